package metacache_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/targets"
	"github.com/metachaos/metachaos/targets/reference"
)

func TestResults(t *testing.T) {
	o := play(t, setting{prepare: warmed(t), cluster: reference.Config{Replicas: 1}}, `
		const fleet = new Fleet({ clients: 1 });
		export default function () {
			for (const r of [fleet.read('item-1'), fleet.write('item-1', 'neu ✓'), fleet.read('item-1'), fleet.read('none'), fleet.scan(), fleet.read('')])
				console.log(JSON.stringify(r));
		}`)
	if o.err != nil || len(o.lines()) != 6 {
		t.Fatal(o.err, o.log.String())
	}
	for i, want := range []string{
		`{"ok":true,"outcome":"done","code":"","epochSent":1,"epochServed":1,"epochLag":0,"owner":"s2","node":"s2-0","shard":"s2","hops":1,"redirects":0,"loop":false,"cache":"miss","documents":1,"duplicates":0,"missing":0,"value":"item-1 as loaded","version":1,"duration":0}`,
		`{"ok":true,"outcome":"done","code":"","epochSent":1,"epochServed":1,"epochLag":0,"owner":"s2","node":"s2-0","shard":"s2","hops":1,"redirects":0,"loop":false,"cache":"hit","documents":1,"duplicates":0,"missing":0,"value":null,"version":2,"duration":0}`,
		`{"ok":true,"outcome":"done","code":"","epochSent":1,"epochServed":1,"epochLag":0,"owner":"s2","node":"s2-0","shard":"s2","hops":1,"redirects":0,"loop":false,"cache":"hit","documents":1,"duplicates":0,"missing":0,"value":"neu ✓","version":2,"duration":0}`,
		`{"ok":true,"outcome":"done","code":"","epochSent":1,"epochServed":1,"epochLag":0,"owner":"s2","node":"s2-0","shard":"s2","hops":1,"redirects":0,"loop":false,"cache":"miss","documents":0,"duplicates":0,"missing":0,"value":null,"version":0,"duration":0}`,
		`{"ok":true,"outcome":"done","code":"","epochSent":0,"epochServed":0,"epochLag":0,"owner":"","node":"","shard":"","hops":2,"redirects":0,"loop":false,"cache":"","documents":40,"duplicates":0,"missing":0,"value":null,"version":0,"duration":0}`,
		`{"ok":false,"outcome":"refused","code":"INVALID","epochSent":1,"epochServed":0,"epochLag":0,"owner":"","node":"s2-0","shard":"s2","hops":1,"redirects":0,"loop":false,"cache":"hit","documents":0,"duplicates":0,"missing":0,"value":null,"version":0,"duration":0}`,
	} {
		if got := o.lines()[i]; got != want {
			t.Errorf("result %d is\n%s, want\n%s", i, got, want)
		}
	}
}

// A result is an object like others to look at, and cannot be changed.
func TestResultsAsObjects(t *testing.T) {
	o := play(t, setting{target: func(context.Context) (targets.Target, error) { return instant{}, nil }}, `
		const fleet = new Fleet({ push: false });
		const attempt = (f) => { try { return f(); } catch (e) { return e.name; } };
		export default function () {
			const r = fleet.read('item-1');
			console.log([Object.keys(r).join(), 'ok' in r, 'okay' in r, r.okay, r.toString(), r.hasOwnProperty('code'), { ...r }.ok,
				attempt(() => { r.ok = false; }), attempt(() => { r.other = 1; }), attempt(() => delete r.ok), attempt(() => delete r.other), r.ok].join('|'));
		}`)
	want := "ok,outcome,code,epochSent,epochServed,epochLag,owner,node,shard,hops,redirects,loop,cache,documents,duplicates,missing,value,version,duration" +
		"|true|false||[object Object]|true|true|TypeError|TypeError|TypeError|true|true"
	if o.err != nil || !slices.Equal(o.lines(), []string{want}) {
		t.Errorf("%v: got\n%s want\n%s", o.err, o.log.String(), want)
	}
}

// keeper shows what arrives at a cluster, and keeps it as it came.
type keeper struct {
	*reference.Memory
	values *[][]byte
}

var _ targets.Target = keeper{}

func (k keeper) Do(ctx context.Context, op targets.Op) targets.Reply {
	if op.Verb == targets.VerbWrite {
		*k.values = append(*k.values, op.Value)
	}
	return k.Memory.Do(ctx, op)
}

func TestValuesThatCanBeWritten(t *testing.T) {
	var kept [][]byte
	o := play(t, setting{prepare: warmed(t), cluster: reference.Config{Replicas: 1},
		wrap: func(m *reference.Memory) targets.Target { return keeper{m, &kept} }}, `
		const fleet = new Fleet();
		export default function () {
			const bytes = new Uint8Array([104, 105, 106]);
			for (const v of ['text', 'ü', '', 5, 1.5, bytes, bytes.buffer, bytes.subarray(1, 2), undefined, null]) {
				fleet.write('item-1', v);
				bytes[0]++; // what was written stays as it was
				const r = fleet.read('item-1');
				console.log(JSON.stringify([r.value, r.version]));
			}
			console.log(JSON.stringify([fleet.read(7).ok, fleet.write(7, 'seven').ok, fleet.read('7').value]));
		}`)
	want := []string{`["text",2]`, `["ü",3]`, `["",4]`, `["5",5]`, `["1.5",6]`, `["mij",7]`, `["nij",8]`, `["i",9]`, `["",10]`, `["",11]`, `[true,true,"seven"]`}
	if o.err != nil || !slices.Equal(o.lines(), want) {
		t.Errorf("%v: got %q, want %q", o.err, o.lines(), want)
	}
	if len(kept) != 11 || string(kept[5]) != "mij" || string(kept[6]) != "nij" {
		t.Errorf("the target was given %q", kept)
	}
}

func TestReadMany(t *testing.T) {
	o := play(t, setting{prepare: warmed(t), cluster: reference.Config{Replicas: 1}}, `
		import { SharedArray } from 'k6/data';
		const fleet = new Fleet({ clients: 3 });
		const shared = new SharedArray('keys', () => ['item-1', 'item-2']);
		const say = (...all) => console.log(all.map((v) => JSON.stringify(v)).join());
		export default function () {
			const all = fleet.readMany(['item-3', 'item-1', 'item-2', 'none']);
			say(all.map((r) => r.value), all.length, Array.isArray(all), all[1] === all[1], all.filter((r) => r.documents).length, all[9] === undefined, all[-1] === undefined);
			say(fleet.readMany(shared).map((r) => r.value), fleet.readMany(new Set(['item-5'])).length, fleet.readMany([]).length, fleet.readMany([7, 'item-1']).length);
			say(JSON.parse(JSON.stringify(fleet.readMany(['item-1'])))[0].ok, [...all].length, all.find((r) => r.value === 'item-2 as loaded').ok);
			all.push('more'); all[5] = 5; all[1] = 'mine'; all.sort((a, b) => String(a.value) < String(b.value) ? -1 : 1);
			say(all.length, all.includes('mine'), all.includes(5));
			all.length = 1; all.length = 3;
			say(all.length, all[1] === undefined, all[2] === undefined);
			try { all.length = 1e9; say('nothing'); } catch (e) { say(e.name); }
		}`)
	want := []string{
		`["item-3 as loaded","item-1 as loaded","item-2 as loaded",null],4,true,true,3,true,true`,
		`["item-1 as loaded","item-2 as loaded"],1,0,2`,
		"true,4,true",
		"6,true,true",
		"3,true,true",
		`"TypeError"`,
	}
	if o.err != nil || !slices.Equal(o.lines(), want) {
		t.Errorf("%v: got\n%s\nwant\n%s", o.err, strings.Join(o.lines(), "\n"), strings.Join(want, "\n"))
	}
	clients := map[string]int{}
	for _, e := range o.events {
		if e.Verb == targets.EventRead {
			clients[e.Client]++
		}
	}
	if n, _ := o.where("metacache_ops", map[string]string{"op": "read"}); n != 10 || clients["f1-0"] < 3 || clients["f1-2"] < 3 {
		t.Errorf("%g reads were recorded, by client %v", n, clients)
	}
}

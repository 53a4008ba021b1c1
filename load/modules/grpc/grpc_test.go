package k6grpc

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/metachaos/metachaos/load/modules/wire/wiretest"
	"github.com/metachaos/metachaos/load/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config() script.Config {
	return script.Config{Modules: map[string]script.Module{"k6/net/grpc": New()}}
}

// with puts a client that knows the protos in front of a script.
func with(address, text string) map[string]string {
	files := map[string]string{"script.js": `import grpc from 'k6/net/grpc'; import { check, sleep } from 'k6';
		const A = '` + address + `';
		const threw = (f) => { try { f(); return ''; } catch (e) { return String(e); } };
		const client = new grpc.Client();
		const methods = client.load(['protos'], 'shop/echo.proto');` + text}
	for name, proto := range echoProto {
		files[name] = proto
	}
	return files
}

func TestInvoke(t *testing.T) {
	address := serve(t, "")
	o := wiretest.Passes(t, 21, config(), with(address, `
		const early = threw(() => client.connect(A));
		export const options = { vus: 1, iterations: 1 };
		export default async function () {
			const before = threw(() => client.invoke('shop.Echo/Say', {}));
			client.connect(A, { plaintext: true, timeout: '5s', maxReceiveSize: 5000 });
			const r = client.invoke('shop.Echo/Say', { text: 'hi', big: '9007199254740993', kind: 'GOOD', raw: 'AQI=', listOf: ['a'], at: '2020-01-02T03:04:05Z' },
				{ metadata: { 'X-Mine': 'v', 'x-raw-bin': new Uint8Array([1, 2]) }, tags: { lane: 'x' } });
			check(r, {
				methods: () => methods.length === 4 && methods[0].fullMethod === '/shop.Echo/Say' && methods[1].isServerStream, early: () => early.includes('init code'),
				before: () => before.includes('connect first'), status: (x) => x.status === grpc.StatusOK && x.error === null,
				message: (x) => x.message.text === 'hi' && x.message.big === '9007199254740993' && x.message.kind === 'GOOD' && x.message.raw === 'AQI=' && x.message.listOf[0] === 'a',
				at: (x) => x.message.at === '2020-01-02T03:04:05Z', headers: (x) => x.headers['x-back'][0] === 'v', trailers: (x) => x.trailers['x-tail'][0] === 'end',
			});
			const no = client.invoke('/shop.Echo/Say', { text: 'refuse' });
			check(no, { code: (x) => x.status === 7 && x.status === grpc.StatusPermissionDenied && x.error.code === 7, reason: (x) => x.error.message === 'no entry',
				details: (x) => x.error.details.length === 1 && x.error.details[0]['@type'].endsWith('ErrorInfo'), zero: (x) => x.message.text === '' && x.message.kind === 'NONE' && x.message.listOf.length === 0 });
			const slow = client.invoke('shop.Echo/Say', { text: 'slow' }, { timeout: 50 });
			const large = client.invoke('shop.Echo/Say', { text: 'large' });
			const nothing = client.invoke('shop.Echo/Say', { text: 'x' }, { discardResponseMessage: true });
			const [p, q] = await Promise.all([client.asyncInvoke('shop.Echo/Say', { text: 'p' }), client.asyncInvoke('shop.Echo/Say', { text: 'q' })]);
			let rejected = ''; try { await client.asyncInvoke('shop.Echo/No', {}); } catch (e) { rejected = String(e); }
			check(null, { slow: () => slow.status === grpc.StatusDeadlineExceeded, large: () => large.status === grpc.StatusResourceExhausted, nothing: () => nothing.message === null,
				async: () => p.message.text === 'p' && q.message.text === 'q', rejected: () => rejected.includes('shop.Echo/No'),
				field: () => threw(() => client.invoke('shop.Echo/Say', { txt: 1 })).includes('shop.Note'), streaming: () => threw(() => client.invoke('shop.Echo/Chat', {})).includes('new grpc.Stream'),
				param: () => threw(() => client.invoke('shop.Echo/Say', {}, { tag: {} })).includes('params.tag'), empty: () => threw(() => client.invoke('shop.Echo/Say')).includes('{}') });
			client.close();
		}`))
	tags := map[string]string{"lane": "x", "status": "0", "service": "shop.Echo", "method": "Say", "url": address + "/shop.Echo/Say", "name": address + "/shop.Echo/Say"}
	if got := o.Count("grpc_req_duration", tags); got != 1 {
		t.Errorf("%d samples of the first call, want 1", got)
	}
	if got := o.Count("grpc_req_duration", nil); got != 7 {
		t.Errorf("%d calls, want 7", got)
	}
	if o.Sum("data_sent", nil) < 100 || o.Sum("data_received", nil) < 100 {
		t.Errorf("data: %v, %v", o.Sum("data_sent", nil), o.Sum("data_received", nil))
	}
}

func TestReflectionAndHealth(t *testing.T) {
	for _, version := range []string{"v1", "v1alpha"} {
		wiretest.Passes(t, 5, config(), map[string]string{"script.js": `
			import grpc from 'k6/net/grpc'; import { check } from 'k6';
			const client = new grpc.Client();
			export default function () {
				client.connect('` + serve(t, version) + `', { plaintext: true, reflect: true });
				const up = client.healthCheck(), down = client.healthCheck('down'), none = client.healthCheck('none');
				check(null, { say: () => client.invoke('shop.Echo/Say', { text: 'r', at: '2020-01-02T03:04:05Z' }).message.text === 'r',
					up: () => up.message.status === grpc.HealthcheckServing, down: () => down.message.status === grpc.HealthcheckNotServing,
					none: () => none.status === grpc.StatusNotFound, constants: () => grpc.StatusUnauthenticated === 16 && grpc.StatusCanceled === 1 });
			}`})
	}
	o := wiretest.Play(t, config(), with(serve(t, ""), `
		export default function () { client.connect(A, { plaintext: true, reflect: true }); }`))
	if !strings.Contains(o.Log, "reflection") || !strings.Contains(o.Log, "Unimplemented") {
		t.Errorf("a server without reflection: log %s", o.Log)
	}
}

func TestStreams(t *testing.T) {
	address := serve(t, "")
	o := wiretest.Passes(t, 9, config(), with(address, `
		const run = (method, messages, params) => new Promise((done) => {
			const s = new grpc.Stream(client, method, params), log = [];
			s.on('data', (m, meta) => log.push(m.text + (meta.ts > 1e12 ? '' : '?')));
			s.on('error', (e) => { log.push('error ' + e.code + ' ' + e.message); done(log); });
			s.on('end', () => { log.push('end'); done(log); });
			for (const text of messages) s.write({ text });
			s.end();
		});
		export default async function () {
			client.connect(A, { plaintext: true });
			const server = await run('shop.Echo/Count', ['a b c'], { tags: { lane: 's' } });
			const many = await run('shop.Echo/Sum', ['1', '2', '3']);
			const both = await run('/shop.Echo/Chat', ['x', 'y']);
			const failed = await run('shop.Echo/Chat', ['x', 'fail', 'z']);
			const s = new grpc.Stream(client, 'shop.Echo/Chat', { timeout: '100ms' });
			const late = await new Promise((done) => s.on('error', (e) => done(e.code)));
			check(null, { server: () => server.join() === 'a,b,c,end', many: () => many.join() === '1+2+3,end', both: () => both.join() === 're:x,re:y,end',
				failed: () => failed[0] === 're:x' && failed[1] === 'error 15 lost it', late: () => late === grpc.StatusDeadlineExceeded,
				event: () => threw(() => s.on('dat', () => {})).includes('"dat"'), client: () => threw(() => new grpc.Stream({}, 'x')).includes('grpc.Client'),
				method: () => threw(() => new grpc.Stream(client, 'shop.Echo/No')).includes('shop.Echo/No'),
				field: () => threw(() => new grpc.Stream(client, 'shop.Echo/Chat', { timeout: 200 }).write({ nope: 1 })).includes('nope') });
			client.close();
		}`))
	tags := map[string]string{"lane": "s", "method": "Count"}
	if o.Sum("grpc_streams", nil) != 6 || o.Sum("grpc_streams_msgs_received", tags) != 3 || o.Sum("grpc_streams_msgs_sent", tags) != 1 {
		t.Errorf("streams %v, received %v, sent %v", o.Sum("grpc_streams", nil), o.Sum("grpc_streams_msgs_received", tags), o.Sum("grpc_streams_msgs_sent", tags))
	}
}

func TestAnIterationThatIsCutEndsItsCalls(t *testing.T) {
	address := serve(t, "")
	for name, body := range map[string]string{
		"call":      `client.invoke('shop.Echo/Say', { text: 'slow' });`,
		"promise":   `client.asyncInvoke('shop.Echo/Say', { text: 'slow' });`,
		"stream":    `const s = new grpc.Stream(client, 'shop.Echo/Chat'); s.write({});`,
		"exception": `const s = new grpc.Stream(client, 'shop.Echo/Chat'); s.on('data', () => { throw new Error('in data'); }); s.write({});`,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			o := wiretest.Play(t, config(), with(address, `
				export const options = { scenarios: { s: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
				export default function () { client.connect(A, { plaintext: true }); `+body+` }`))
			if o.Err != nil || time.Since(began) > 10*time.Second {
				t.Errorf("error %v after %v", o.Err, time.Since(began))
			}
			if name == "exception" && !strings.Contains(o.Log, "in data") {
				t.Errorf("log: %s", o.Log)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	pair, certPEM, keyPEM := certificate(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(certPEM))
	open, strict := serve(t, "", withTLS(pair, nil)), serve(t, "", withTLS(pair, clients))
	files := with(open, `
		const B = '`+strict+`';
		const key = open('./key.pem');
		const cert = open('./cert.pem');
		const say = (address, params) => threw(() => { client.connect(address, params); if (client.invoke('shop.Echo/Say', {}).status !== 0) throw new Error('refused'); });
		export default function () {
			check(null, { unknown: () => say(A).includes('certificate'), known: () => say(A, { tls: { cacerts: cert } }) === '',
				'no client certificate': () => say(B, { tls: { cacerts: [cert] } }) !== '', 'client certificate': () => say(B, { tls: { cacerts: cert, key, cert } }) === '',
				plaintext: () => say(A, { plaintext: true, timeout: '3s' }) !== '', half: () => say(B, { tls: { cert } }).includes('both or none'), pem: () => say(B, { tls: { cacerts: 'x' } }).includes('PEM') });
			client.close();
		}`)
	files["cert.pem"], files["key.pem"] = certPEM, keyPEM
	wiretest.Passes(t, 7, config(), files)
	files["script.js"] = strings.Replace(files["script.js"], "export default", `export const options = { insecureSkipTLSVerify: true };
		export function teardown() { client.connect(A); console.log('skipped ' + client.invoke('shop.Echo/Say', {}).status + ';'); client.close(); }
		export default`, 1)
	if o := wiretest.Play(t, config(), files); !strings.Contains(o.Log, "skipped 0;") {
		t.Errorf("insecureSkipTLSVerify: error %v, log %s", o.Err, o.Log)
	}
}

func TestConnectRefusals(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	wiretest.Passes(t, 5, config(), with(silent.Addr().String(), `
		export default function () {
			check(null, { closed: () => threw(() => client.connect('127.0.0.1:1', { plaintext: true })).includes('connection refused'),
				silent: () => threw(() => client.connect(A, { plaintext: true, timeout: '300ms' })).includes('in time'),
				address: () => threw(() => client.connect('http://h')).includes('host:port'),
				param: () => threw(() => client.connect(A, { plain: true })).includes('params.plain'),
				timeout: () => threw(() => client.connect(A, { timeout: 'soon' })).includes('params.timeout') });
		}`))
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ load, want string }{
		"no file":   {`client.load(['protos']);`, "got no file"},
		"missing":   {`client.load(['protos'], 'none.proto');`, "none.proto"},
		"syntax":    {`client.load([], 'bad.proto');`, "bad.proto:2:"},
		"protoset":  {`client.loadProtoset('bad.proto');`, "descriptor set"},
		"too late":  {`export function setup() { client.load([], 'bad.proto'); }`, "init code"},
		"late sets": {`export function setup() { client.loadProtoset('set.pb'); }`, "init code"},
	} {
		files := with("", c.load+` export default function () {}`)
		files["bad.proto"] = "syntax = \"proto3\";\nmessage {}"
		if o := wiretest.Play(t, config(), files); o.Err == nil || !strings.Contains(o.Err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, o.Err, c.want)
		}
	}
}

func TestLoadProtoset(t *testing.T) {
	address := serve(t, "")
	var all schema
	if err := all.add(compiled(t)...); err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	for _, name := range []string{"google/protobuf/timestamp.proto", "shop/types.proto", "shop/echo.proto"} {
		f, err := all.files.FindFileByPath(name)
		if err != nil {
			t.Fatal(err)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	raw, err := proto.Marshal(&set)
	if err != nil {
		t.Fatal(err)
	}
	wiretest.Passes(t, 2, config(), map[string]string{"set.pb": string(raw), "script.js": fmt.Sprintf(`
		import grpc from 'k6/net/grpc'; import { check } from 'k6';
		const client = new grpc.Client();
		const methods = client.loadProtoset('set.pb');
		export const options = { vus: 2, iterations: 2 };
		export default function () {
			client.connect('%s', { plaintext: true });
			check(null, { say: () => methods.length === 4 && client.invoke('shop.Echo/Say', { text: 's' }).message.text === 's' });
			client.close();
		}`, address)})
}

func FuzzCompile(f *testing.F) {
	for _, text := range echoProto {
		f.Add(text)
	}
	f.Add("syntax = \"proto3\"; message A { A a = 1; } service S { rpc R(A) returns (A); }")
	f.Fuzz(func(t *testing.T, text string) {
		files, err := compile(t.Context(), func(string) ([]byte, error) { return []byte(text), nil }, nil, []string{"fuzz.proto"})
		if err == nil {
			var s schema
			_ = s.add(files...) // may refuse, and must not panic
		}
	})
}

func FuzzProtoset(f *testing.F) {
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(compiled(f)[0].Imports().Get(0))}}
	raw, err := proto.Marshal(set)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	if odd, err := base64.StdEncoding.DecodeString("CgMKAWE="); err == nil {
		f.Add(odd)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		files, err := parseSet("fuzz", raw)
		if err == nil {
			var s schema
			_ = s.add(files...) // may refuse, and must not panic
		}
	})
}

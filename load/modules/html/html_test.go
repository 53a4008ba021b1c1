package k6html

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/metachaos/metachaos/load/modules/wire/wiretest"
	"github.com/metachaos/metachaos/load/script"
)

const page = `<!DOCTYPE html><html lang="en"><head><title>Shelf</title></head><body>
<h1 id="top" class="big loud" data-kind="head" data-last-name="x" data-n="3" data-zip="007" data-o='{"a":[1]}' data-b="true" data-z="null">Items</h1>
<ul id="list"><li class="item a">pear</li><li class="item b" lang="fr">plum</li><li class="item c">fig<i>!</i></li></ul>
<p>Some <b>bold</b> words.</p><!-- note -->
<a id="link" href="https://u:pw@h.test:81/p/q?x=1#frag" rel="next" target="_blank">go</a>
<form id="f" action="/send" method="POST">
<input name="token" type="hidden" value="t7"><input name="user" value="ada lo"><input type="checkbox" name="yes" checked><input type="checkbox" name="no" value="n">
<input type="radio" name="r" value="1"><input type="radio" name="r" value="2" checked><input name="off" value="x" disabled><input value="nameless">
<select name="one"><option>first</option><option value="2">second</option></select>
<select name="chosen"><option value="1">a</option><option value="2" selected>b</option></select>
<select name="many" multiple size="4"><option selected>p</option><option>q</option><option value="R" selected>r</option></select>
<textarea name="note" rows="3">hi
you</textarea><fieldset disabled><input name="inside" value="x"></fieldset>
<label for="sub" id="lab">Send</label><input type="submit" id="sub" name="go" value="Send"><button id="b">B</button></form>
<table><tr><td colspan="2">1</td><td>2</td></tr></table></body></html>`

// TestExpressions compares what expressions over the page are, as JSON. S(x)
// is the text of each element of a selection.
func TestExpressions(t *testing.T) {
	cases := [][2]string{
		// finding and walking
		{`doc.find('title').text()`, `"Shelf"`},
		{`doc.find('li').size()`, `3`},
		{`doc.find('ul').find('.b').text()`, `"plum"`},
		{`S(doc.find('body').find(doc.find('li')))`, `["pear","plum","fig!"]`},
		{`S(doc.find('li').first())`, `["pear"]`},
		{`S(doc.find('li').last())`, `["fig!"]`},
		{`S(doc.find('li').eq(1))`, `["plum"]`},
		{`S(doc.find('li').eq(-1))`, `["fig!"]`},
		{`S(doc.find('li').eq(9))`, `[]`},
		{`S(doc.find('li').slice(1))`, `["plum","fig!"]`},
		{`S(doc.find('li').slice(-2, -1))`, `["plum"]`},
		{`S(doc.find('li').slice(2, 1))`, `[]`},
		{`S(doc.find('ul').children())`, `["pear","plum","fig!"]`},
		{`S(doc.find('ul').children('.a'))`, `["pear"]`},
		{`S(doc.find('.a').next())`, `["plum"]`},
		{`S(doc.find('.a').next('.c'))`, `[]`},
		{`S(doc.find('.a').nextAll())`, `["plum","fig!"]`},
		{`S(doc.find('.a').nextAll('.c'))`, `["fig!"]`},
		{`S(doc.find('.a').nextUntil('.c'))`, `["plum"]`},
		{`S(doc.find('.a').nextUntil(doc.find('.c')))`, `["plum"]`},
		{`S(doc.find('.a').nextUntil())`, `["plum","fig!"]`},
		{`S(doc.find('.a').nextUntil(null, '.c'))`, `["fig!"]`},
		{`S(doc.find('.c').prev())`, `["plum"]`},
		{`S(doc.find('.c').prevAll())`, `["plum","pear"]`},
		{`S(doc.find('.c').prevUntil('.a'))`, `["plum"]`},
		{`doc.find('i').parent().is('.c')`, `true`},
		{`doc.find('i').parent('.b').size()`, `0`},
		{`doc.find('i').parents().size()`, `4`},
		{`doc.find('i').parents('ul').attr('id')`, `"list"`},
		{`doc.find('i').parentsUntil('body').size()`, `2`},
		{`S(doc.find('.b').siblings())`, `["pear","fig!"]`},
		{`S(doc.find('.b').siblings('.c'))`, `["fig!"]`},
		{`doc.find('i').closest('ul').attr('id')`, `"list"`},
		{`doc.find('i').closest(doc.find('li')).text()`, `"fig!"`},
		{`doc.find('p').contents().size()`, `3`},
		// filtering
		{`S(doc.find('li').filter('.b'))`, `["plum"]`},
		{`S(doc.find('li').filter((i, el) => i > 0 && el.text() !== 'plum'))`, `["fig!"]`},
		{`S(doc.find('li').filter(doc.find('.a')))`, `["pear"]`},
		{`S(doc.find('li').not('.b'))`, `["pear","fig!"]`},
		{`S(doc.find('li').not((i) => i === 0))`, `["plum","fig!"]`},
		{`S(doc.find('li').has('i'))`, `["fig!"]`},
		{`S(doc.find('li').has(doc.find('i')))`, `["fig!"]`},
		{`[doc.find('li').is('.b'), doc.find('li').is('.z'), doc.find('li').is(doc.find('.a')), doc.find('li').is((i, el) => el.text() === 'x')]`, `[true,false,true,false]`},
		{`doc.find('li:nth-child(2)').hasClass('b')`, `true`},
		{`doc.find('###').size()`, `0`},
		// reading
		{`doc.find('#top').attr('class')`, `"big loud"`},
		{`[doc.find('#top').attr('nope'), doc.find('#top').attr('nope', 'dflt')]`, `[null,"dflt"]`},
		{`doc.find('p').html()`, `"Some <b>bold</b> words."`},
		{`[doc.find('nope').html(), doc.find('nope').text(), doc.find('nope').val(), doc.find('nope').data('x')]`, `[null,"",null,null]`},
		{`doc.find('#top').data()`, `{"kind":"head","lastName":"x","n":3,"zip":"007","o":{"a":[1]},"b":true,"z":null}`},
		{`[doc.find('#top').data('lastName'), doc.find('#top').data('last-name'), doc.find('#top').data('no', 1)]`, `["x","x",1]`},
		{`[doc.find('.c').index(), doc.find('.c').index('ul li'), doc.find('li').index(doc.find('.b'))]`, `[2,2,1]`},
		{`doc.find('li').map((i, el) => i + el.text())`, `["0pear","1plum","2fig!"]`},
		{`(() => { const all = []; doc.find('li').each((i, el) => { all.push(i + el.textContent() + el.text()); if (i === 1) return false; }); return all; })()`, `["0pearpear","1plumplum"]`},
		{`doc.find('li').toArray().map((x) => x.text())`, `["pear","plum","fig!"]`},
		{`[doc.find('li').get(1).innerHTML(), doc.find('li').get(-1).innerHTML(), doc.find('li').get(7)]`, `["plum","fig<i>!</i>",null]`},
		{`doc.find('li').get().length`, `3`},
		// forms
		{`['token', 'user', 'yes', 'no', 'one', 'chosen', 'many', 'note'].map((n) => doc.find('[name=' + n + ']').val())`, `["t7","ada lo","on","n","first","2",["p","R"],"hi\nyou"]`},
		{`[doc.find('option').eq(1).val(), doc.find('p').val()]`, `["2",null]`},
		{`doc.find('form').serializeObject()`, `{"token":"t7","user":"ada lo","yes":"on","r":"2","one":"first","chosen":"2","many":["p","R"],"note":"hi\nyou"}`},
		{`doc.find('form').serialize()`, `"chosen=2&many=p&many=R&note=hi%0Ayou&one=first&r=2&token=t7&user=ada+lo&yes=on"`},
		{`doc.find('input[name=user]').serializeArray()`, `[{"name":"user","value":"ada lo"}]`},
		// elements
		{`['li', 'p'].map((s) => doc.find(s).get(0).nodeName())`, `["li","p"]`},
		{`(() => { const n = doc.find('p').get(0); return [n.nodeType(), n.firstChild().nodeType(), n.firstChild().nodeName(), n.firstChild().nodeValue(), n.nodeValue(), n.childNodes().length, n.children().length, n.childElementCount()]; })()`,
			`[1,3,"#text","Some ",null,3,1,1]`},
		{`(() => { const n = doc.find('p').get(0); return [n.lastChild().textContent(), n.firstElementChild().textContent(), n.lastElementChild().textContent(), n.nextSibling().nodeType(), n.previousElementSibling().id(), n.nextElementSibling().id()]; })()`,
			`[" words.","bold","bold",8,"list","link"]`},
		{`(() => { const n = doc.find('.b').get(0); return [n.lang(), n.className(), n.classList(), n.parentNode().id(), n.parentElement().id(), n.previousSibling().textContent(), n.hasChildNodes(), n.ownerDocument().nodeType()]; })()`,
			`["fr","item b",["item","b"],"list","list","pear",true,9]`},
		{`[doc.find('html').get(0).parentElement(), doc.find('i').get(0).lang()]`, `[null,"en"]`},
		{`(() => { const n = doc.find('#top').get(0); return [n.getAttribute('data-n'), n.getAttribute('x'), n.hasAttribute('class'), n.hasAttributes(), n.attributes()['data-n'].value, n.getAttributeNode('id').name, n.getAttributeNode('x'), n.attributes().id.ownerElement.id()]; })()`,
			`["3",null,true,true,"3","id",null,"top"]`},
		{`(() => { const n = doc.find('ul').get(0); return [n.querySelector('.b').textContent(), n.querySelector('.z'), n.querySelectorAll('li').length, n.getElementsByTagName('i').length, n.getElementsByClassName('item b').length, n.matches('#list')]; })()`,
			`["plum",null,3,1,1,true]`},
		{`(() => { const u = doc.find('ul').get(0), i = doc.find('i').get(0); return [u.contains(i), i.contains(u), u.isSameNode(doc.find('#list').get(0)), u.isEqualNode(i), u.isEqualNode(u), u.contains(1)]; })()`,
			`[true,false,true,false,true,false]`},
		{`[doc.find('p').get(0).namespaceURI(), doc.find('p').get(0).isDefaultNamespace('x'), String(doc.find('p').get(0)).length > 0]`, `["http://www.w3.org/1999/xhtml",false,true]`},
		{`(() => { const a = doc.find('a').get(0); return [a.href(), a.host(), a.hostname(), a.port(), a.pathname(), a.search(), a.hash(), a.protocol(), a.origin(), a.username(), a.password(), a.rel(), a.target(), a.text()]; })()`,
			`["https://u:pw@h.test:81/p/q?x=1#frag","h.test:81","h.test","81","/p/q","?x=1","#frag","https:","https://h.test:81","u","pw","next","_blank","go"]`},
		{`(() => { const f = doc.find('form').get(0); return [f.action(), f.method(), f.enctype(), f.elements().length, f.length(), f.noValidate()]; })()`,
			`["/send","post","application/x-www-form-urlencoded",16,16,false]`},
		{`(() => { const s = doc.find('select'); return [s.get(2).type(), s.get(0).type(), s.get(2).size(), s.get(2).options().length, s.get(2).selectedOptions().length, s.get(1).selectedIndex(), s.get(0).selectedIndex(), s.get(0).length(), s.get(2).multiple(), s.get(2).form().id()]; })()`,
			`["select-multiple","select-one",4,3,2,1,0,2,true,"f"]`},
		{`(() => { const i = doc.find('input'); return [i.get(0).type(), i.get(1).type(), i.get(2).checked(), i.get(1).value(), doc.find('textarea').get(0).type(), doc.find('#b').get(0).type(), doc.find('[name=off]').get(0).disabled()]; })()`,
			`["hidden","text",true,"ada lo","textarea","submit",true]`},
		{`[doc.find('#lab').get(0).htmlFor(), doc.find('#lab').get(0).control().id(), doc.find('#sub').get(0).labels()[0].id(), doc.find('p').get(0).form()]`, `["sub","sub","lab",null]`},
		{`(() => { const t = doc.find('td').get(0); return [t.colSpan(), doc.find('td').get(1).colSpan(), doc.find('td').get(1).cellIndex(), doc.find('table').get(0).rows().length, doc.find('tr').get(0).cells().length, doc.find('option').get(1).index()]; })()`,
			`[2,1,1,1,2,1]`},
		// misuse
		{`T(() => doc.find('li').each(5))`, `"each: want a function, got 5"`},
		{`T(() => doc.find('li').filter())`, `"filter: want a selector, a selection or a function, got undefined"`},
		{`T(() => doc.find.call({}, 'li'))`, `"find: want to be called on a selection or an element, got [object Object]"`},
		{`T(() => doc.find('li').map(() => { throw new Error('mine'); }))`, `"mine"`},
	}
	var lines strings.Builder
	for i, c := range cases {
		want, err := json.Marshal(c[1])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "same(%d, () => %s, %s);\n", i, c[0], want)
	}
	text, err := json.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	o := wiretest.Play(t, script.Config{Modules: map[string]script.Module{ImportPath: New()}}, map[string]string{"script.js": `
		import { parseHTML } from 'k6/html';
		import { check } from 'k6';
		const S = (sel) => sel.toArray().map((x) => x.text());
		const T = (f) => { try { return f(); } catch (e) { return e.message; } };
		export default function () {
			const doc = parseHTML(` + string(text) + `);
			const same = (i, f, want) => {
				let got;
				try { const v = f(); got = JSON.stringify(v === undefined ? null : v); } catch (e) { got = 'threw ' + e; }
				check(null, { [i]: () => got === want });
				if (got !== want) console.error('case ' + i + ' is ' + got);
			};
			` + lines.String() + `}`})
	if o.Err != nil || o.Count("checks", nil) != len(cases) {
		t.Errorf("%d of %d cases ran: %v", o.Count("checks", nil), len(cases), o.Err)
	}
	for i, c := range cases {
		if o.Sum("checks", map[string]string{"check": fmt.Sprint(i)}) != 1 {
			t.Errorf("case %d: %s\nwant %s", i, c[0], c[1])
		}
	}
	if t.Failed() {
		t.Log(o.Log)
	}
}

func TestAnythingCanBeParsed(t *testing.T) {
	wiretest.Passes(t, 3, script.Config{Modules: map[string]script.Module{ImportPath: New()}}, map[string]string{"script.js": `
		import html from 'k6/html';
		import { check } from 'k6';
		export default function () {
			check(null, {
				'nothing': () => html.parseHTML('').find('p').size() === 0,
				'no HTML': () => html.parseHTML('{"a":1}').text() === '{"a":1}',
				'unclosed': () => html.parseHTML('<p>a<p>b<').find('p').size() === 2,
			});
		}`})
}

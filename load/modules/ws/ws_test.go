package k6ws

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/load/modules/wire/wiretest"
	"github.com/metachaos/metachaos/load/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that echoes, and does what some messages ask for.
func serve(t *testing.T) (address string) {
	t.Helper()
	upgrader := websocket.Upgrader{Subprotocols: []string{"echo.v2", "echo.v1"}, EnableCompression: true,
		CheckOrigin: func(*http.Request) bool { return true }}
	ctx, stop := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-ctx.Done()
			return
		}
		if r.URL.Path != "/ws" {
			http.Error(w, "not here", http.StatusTeapot)
			return
		}
		conn, err := upgrader.Upgrade(w, r, http.Header{"X-Answer": {"yes"}})
		if err != nil {
			return // the client reports it
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		echo(conn, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(stop)
	return strings.Replace(server.URL, "http", "ws", 1)
}

func echo(conn *websocket.Conn, r *http.Request) {
	for {
		kind, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		switch text := string(data); {
		case text == "close":
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "as asked"), time.Now().Add(time.Second))
			return
		case text == "drop":
			return
		case text == "ping":
			_ = conn.WriteControl(websocket.PingMessage, []byte("p"), time.Now().Add(time.Second))
			_ = conn.WriteMessage(websocket.TextMessage, []byte("pinged"))
		case strings.HasPrefix(text, "header "):
			_ = conn.WriteMessage(websocket.TextMessage, []byte(r.Header.Get(text[7:])))
		default:
			_ = conn.WriteMessage(kind, data)
		}
	}
}

func config() script.Config {
	return script.Config{Modules: map[string]script.Module{"k6/ws": Blocking(), "k6/websockets": Browser()}}
}

// with puts the server's address in front of a script.
func with(address, text string) map[string]string {
	return map[string]string{"script.js": `import ws from 'k6/ws'; import { WebSocket, Blob } from 'k6/websockets';
		import { check, sleep } from 'k6';
		const W = '` + address + `';` + text}
}

func TestConnect(t *testing.T) {
	address := serve(t)
	o := wiretest.Passes(t, 11, config(), with(address, `
		export default function () {
			const log = [];
			let binary, headerValue;
			const r = ws.connect(W + '/ws', { headers: { 'X-Mine': 'v', 'Sec-WebSocket-Protocol': 'echo.v1' }, tags: { lane: 'x' }, compression: 'deflate' }, (s) => {
				let ticks = 0;
				s.on('open', () => { log.push('open'); s.send('hello'); s.sendBinary(new Uint8Array([1, 250])); s.send('header X-Mine'); s.ping(); s.send('ping'); });
				s.on('message', (m) => log.push(m));
				s.on('binaryMessage', (b) => { binary = new Uint8Array(b); });
				s.on('pong', () => log.push('pong'));
				s.on('ping', () => log.push('ping'));
				s.on('close', (code) => log.push('close ' + code));
				s.setInterval(() => {
					if (++ticks !== 3) return;
					log.push('ticked');
					s.setTimeout(() => s.send('close'), 10);
				}, 10);
			});
			check(log, {
				first: (l) => l[0] === 'open' && l[1] === 'hello', header: (l) => l.includes('v'), pong: (l) => l.includes('pong'),
				ping: (l) => l.includes('ping') && l.includes('pinged'), ticks: (l) => l.includes('ticked'), last: (l) => l[l.length - 1] === 'close 4001',
				binary: () => binary.length === 2 && binary[1] === 250,
				status: () => r.status === 101 && r.url === W + '/ws' && r.error === '',
				headers: () => r.headers['X-Answer'] === 'yes' && r.headers['Sec-Websocket-Protocol'] === 'echo.v1',
			});
			let dropped = [];
			ws.connect(W + '/ws', (s) => {
				s.on('open', () => s.send('drop'));
				s.on('error', (e) => dropped.push('error ' + (e.message || e)));
				s.on('close', (c) => dropped.push('close ' + c));
			});
			check(dropped, { dropped: (d) => d.length === 2 && d[0].startsWith('error') && d[1] === 'close 1006' });
			let own = 0;
			ws.connect(W + '/ws', null, (s) => { s.on('close', (c) => { own = c; }); s.on('open', () => s.close(3000)); });
			check(own, { own: 3000 === own });
		}`))
	tags := map[string]string{"lane": "x", "status": "101", "subproto": "echo.v1", "url": address + "/ws", "scenario": "default"}
	for metric, want := range map[string]int{"ws_sessions": 1, "ws_connecting": 1, "ws_session_duration": 1, "ws_msgs_sent": 5, "ws_msgs_received": 4, "ws_ping": 1, "data_sent": 1} {
		if got := o.Count(metric, tags); got != want {
			t.Errorf("%s: %d samples, want %d", metric, got, want)
		}
	}
	if o.Sum("data_received", tags) < 100 {
		t.Errorf("data_received: %v", o.Sum("data_received", tags))
	}
}

func TestConnectRefusals(t *testing.T) {
	address := serve(t)
	o := wiretest.Passes(t, 9, config(), with(address, `
		const threw = (f) => { try { f(); return ''; } catch (e) { return String(e); } };
		const early = threw(() => ws.connect(W + '/ws', () => {}));
		export default function () {
			const r = ws.connect(W + '/tea', null, () => {});
			const none = ws.connect('ws://127.0.0.1:1/', null, () => {});
			check(null, {
				tea: () => r.status === 418 && r.body.includes('not here') && r.error !== '', none: () => none.status === 0 && none.error.includes('127.0.0.1:1'),
				early: () => early.includes('init code'), scheme: () => threw(() => ws.connect('http://h', () => {})).includes('ws://'),
				fn: () => threw(() => ws.connect(W, {})).includes('function'), compression: () => threw(() => ws.connect(W, { compression: 'lz' }, () => {})).includes('deflate'),
				handler: () => threw(() => ws.connect(W + '/ws', (s) => { s.on('open', () => { throw new Error('in handler'); }); })).includes('in handler'),
				timer: () => threw(() => ws.connect(W + '/ws', (s) => s.setTimeout(() => {}, 0))).includes('more than 0'),
				bytes: () => threw(() => ws.connect(W + '/ws', (s) => s.on('open', () => s.sendBinary('text')))).includes('ArrayBuffer'),
			});
		}`))
	if !strings.Contains(o.Log, "could not be opened") {
		t.Errorf("log: %s", o.Log)
	}
	thrown := wiretest.Play(t, config(), with(address, `
		export const options = { throw: true, blockHostnames: ['*.example'], hosts: { 'somewhere.test': '127.0.0.1' }, blacklistIPs: ['127.1.0.0/16'] };
		export default function () {
			try { ws.connect('ws://blocked.example/', () => {}); } catch (e) { console.log('first ' + e); }
			try { ws.connect('ws://127.1.2.3:1/', () => {}); } catch (e) { console.log('second ' + e); }
			const port = W.split(':')[2];
			console.log('third ' + ws.connect('ws://somewhere.test:' + port + '/ws', (s) => s.close()).status);
		}`))
	for _, want := range []string{"blockHostnames blocks *.example", "blacklistIPs blocks 127.1.2.3", "third 101"} {
		if !strings.Contains(thrown.Log, want) {
			t.Errorf("log lacks %q: %s", want, thrown.Log)
		}
	}
}

// A socket that nobody closes must not outlive the iteration.
func TestAnIterationThatIsCutClosesItsSockets(t *testing.T) {
	address := serve(t)
	for name, body := range map[string]string{
		"blocking":  `ws.connect(W + '/ws', (s) => {});`,
		"browser":   `new WebSocket(W + '/ws');`,
		"dialling":  `new WebSocket(W + '/slow');`,
		"waiting":   `ws.connect(W + '/slow', (s) => {});`,
		"exception": `const s = new WebSocket(W + '/ws'); s.onopen = () => { throw new Error('in onopen'); };`,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			o := wiretest.Play(t, config(), with(address, `
				export const options = { scenarios: { s: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s' } } };
				export default function () { `+body+` }`))
			if o.Err != nil || time.Since(began) > 10*time.Second {
				t.Errorf("error %v after %v", o.Err, time.Since(began))
			}
			if name == "exception" && !strings.Contains(o.Log, "in onopen") {
				t.Errorf("log: %s", o.Log)
			}
		})
	}
}

func TestWebSocket(t *testing.T) {
	address := serve(t)
	o := wiretest.Passes(t, 17, config(), with(address, `
		const threw = (f) => { try { f(); return ''; } catch (e) { return String(e); } };
		export default async function () {
			const log = [];
			const s = new WebSocket(W + '/ws', ['echo.v1'], { headers: { 'X-Mine': 'v' }, tags: { lane: 'y' } });
			check(s, { connecting: (x) => x.readyState === WebSocket.CONNECTING && x.binaryType === 'blob' && x.url === W + '/ws',
				early: (x) => threw(() => x.send('x')).includes('not open'), type: (x) => threw(() => { x.binaryType = 'text'; }).includes('arraybuffer') });
			let blob, buffer;
			const closed = new Promise((done) => { s.onclose = (e) => { log.push('close ' + e.code + ' ' + e.reason); done(e); }; });
			s.addEventListener('open', (e) => {
				log.push('open ' + s.readyState + ' ' + (e.target === s) + ' ' + s.protocol);
				s.send('hi'); s.send('header X-Mine'); s.send(new Blob([new Uint8Array([1, 2]), 'a'])); s.ping();
			});
			s.onpong = () => { log.push('pong'); s.binaryType = 'arraybuffer'; s.send(new Uint8Array([9, 8])); };
			s.onping = () => log.push('ping');
			s.onmessage = (e) => {
				if (e.data instanceof Blob) { blob = e.data; return; }
				if (e.data instanceof ArrayBuffer) { buffer = e.data; s.send('ping'); return; }
				log.push(e.data);
				if (e.data === 'pinged') s.send('close');
			};
			s.onerror = (e) => log.push('error ' + e.error);
			const last = await closed;
			const text = await blob.text(), bytes = new Uint8Array(await blob.arrayBuffer());
			check(log, {
				open: (l) => l[0] === 'open 1 true echo.v1', echo: (l) => l[1] === 'hi' && l[2] === 'v', pong: (l) => l.includes('pong'), ping: (l) => l.includes('ping'),
				blob: () => blob.size === 3 && text === '\u0001\u0002a' && bytes.join() === '1,2,97', buffer: () => new Uint8Array(buffer).join() === '9,8',
				closed: (l) => l.includes('error websocket: close 4001: as asked') && l[l.length - 1] === 'close 4001 as asked' && s.readyState === WebSocket.CLOSED,
				after: () => threw(() => s.send('x')) === '' && last.type === 'close' && last.wasClean === false,
			});
			const own = new WebSocket(W + '/ws');
			const ownClose = await new Promise((done) => { own.onclose = done; own.onopen = () => { own.close(1000, 'bye'); }; });
			const failed = new WebSocket('ws://127.0.0.1:1/');
			const events = [];
			await new Promise((done) => { failed.onerror = (e) => events.push(typeof e.error + e.error); failed.onclose = (e) => { events.push('close'); done(); }; });
			const stopped = new WebSocket(W + '/slow');
			await new Promise((done) => setTimeout(done, 30)); // until it waits for an answer
			await new Promise((done) => { stopped.onclose = done; stopped.close(); });
			check(null, { clean: () => ownClose.code === 1000 && ownClose.wasClean, failed: () => events.length === 2 && events[0].startsWith('string') && events[1] === 'close',
				code: () => threw(() => own.close(1001)).includes('1000'), url: () => threw(() => new WebSocket('h')).includes('ws://'),
				event: () => threw(() => s.addEventListener('boom', () => {})).includes('boom'), stopped: () => stopped.readyState === 3 });
		}`))
	if got := o.Count("ws_msgs_sent", map[string]string{"lane": "y"}); got != 6 {
		t.Errorf("%d messages were sent, want 6", got)
	}
	if got := o.Count("ws_sessions", nil); got != 2 {
		t.Errorf("%d sessions, want 2", got)
	}
}

func TestBlob(t *testing.T) {
	wiretest.Passes(t, 6, config(), with("", `
		export default async function () {
			const b = new Blob(['ab', new Uint8Array([99]).buffer, new Blob(['de'])], { type: 'text/plain' });
			const part = await b.slice(1, -1).text(), typed = b.slice(3, 9, 'x/y'), typedText = await typed.text();
			const bytes = await b.bytes();
			check(b, { size: (x) => x.size === 5, type: (x) => x.type === 'text/plain', slice: () => part === 'bcd',
				typed: () => typed.type === 'x/y' && typedText === 'de' && typed instanceof Blob, empty: () => new Blob().size === 0,
				bytes: () => bytes instanceof Uint8Array && bytes[2] === 99 });
		}`))
}

// jarModule stands for the module of HTTP, which shares its cookies.
type jarModule struct{ jar http.CookieJar }

func (m jarModule) Exports(h script.Host) script.Exports {
	wire.ShareJar(h.(script.ProtocolHost), func() http.CookieJar { return m.jar })
	return script.Exports{}
}

func TestCookiesOfTheVUAreSent(t *testing.T) {
	address := serve(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(strings.Replace(address, "ws", "http", 1))
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(u, []*http.Cookie{{Name: "session", Value: "7"}})
	cfg := config()
	cfg.Modules["k6/x/jar"] = jarModule{jar}
	files := with(address, `
		export default function () {
			let got = '';
			ws.connect(W + '/ws', (s) => { s.on('open', () => s.send('header Cookie')); s.on('message', (m) => { got = m; s.close(); }); });
			check(got, { cookie: (g) => g === 'session=7' });
		}`)
	files["script.js"] = "import 'k6/x/jar';" + files["script.js"]
	wiretest.Passes(t, 1, cfg, files)
}

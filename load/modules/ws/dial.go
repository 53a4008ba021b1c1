package k6ws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
	"github.com/metachaos/metachaos/results"
)

// params are what scripts say about a connection.
type params struct {
	headers     http.Header
	tags        map[string]string
	protocols   []string
	compression bool
}

// readParams reads {headers, tags, compression}.
func readParams(v sobek.Value) (params, error) {
	p := params{headers: http.Header{}}
	if wire.Absent(v) {
		return p, nil
	}
	o, ok := v.(*sobek.Object)
	if !ok {
		return p, fmt.Errorf("params: want an object, got %s", v)
	}
	headers, err := wire.Strings("params.headers", o.Get("headers"))
	if err != nil {
		return p, err
	}
	for name, value := range headers {
		if strings.EqualFold(name, "Sec-WebSocket-Protocol") {
			p.protocols = append(p.protocols, value)
			continue
		}
		p.headers.Set(name, value)
	}
	if p.tags, err = wire.Strings("params.tags", o.Get("tags")); err != nil {
		return p, err
	}
	switch c := o.Get("compression"); {
	case wire.Absent(c), c.String() == "":
	case c.String() == "deflate":
		p.compression = true
	default:
		return p, fmt.Errorf("params.compression: want deflate, got %s", c)
	}
	return p, nil
}

// checkURL wants a ws or wss address with a host.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("connect %s: %w", address, err)
	}
	if u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
		return fmt.Errorf("connect %s: want an address such as ws://host/path or wss://host/path", address)
	}
	return nil
}

// connection is an open WebSocket. Writing is safe for concurrent use; reading
// is not.
type connection struct {
	conn   *websocket.Conn
	dialer *wire.Dialer
	tags   *results.Tags
	opened time.Time

	writing sync.Mutex
	pinging sync.Mutex
	pings   map[string]time.Time // by payload
	nextID  uint64
}

// handshake is the server's answer to the request for a WebSocket; the status
// is 0 when there was none.
type handshake struct {
	status  int
	headers http.Header
	body    string
}

// handshakeLimit bounds the opening of a connection.
const handshakeLimit = time.Minute

// writeLimit bounds writing one frame to a server that does not read.
const writeLimit = 10 * time.Second

// dial opens a connection. The tags are those of the VU when the dialling
// started.
func (o *dialling) dial(ctx context.Context) (*connection, handshake, error) {
	// The library does not look at ctx while it waits for the server's answer.
	stop := func() bool { return true }
	d := websocket.Dialer{NetDialContext: func(dialCtx context.Context, network, address string) (net.Conn, error) {
		conn, err := o.dialer.DialContext(dialCtx, network, address)
		if err == nil {
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}, TLSClientConfig: o.dialer.Options.TLS(), HandshakeTimeout: handshakeLimit, Jar: o.jar,
		Subprotocols: o.params.protocols, EnableCompression: o.params.compression}
	if agent := o.dialer.Options.UserAgent; agent != "" && o.params.headers.Get("User-Agent") == "" {
		o.params.headers.Set("User-Agent", agent)
	}
	conn, response, err := d.DialContext(ctx, o.address, o.params.headers)
	stop()
	var h handshake
	if response != nil {
		h.status, h.headers = response.StatusCode, response.Header
		if response.Body != nil {
			body, _ := io.ReadAll(response.Body) // a refusal is small, and held in memory already
			h.body = string(body)
			response.Body.Close()
		}
	}
	if err != nil {
		return nil, h, fmt.Errorf("connect %s: %w", o.address, err)
	}
	return &connection{conn: conn, dialer: o.dialer, opened: time.Now(), pings: map[string]time.Time{}}, h, nil
}

// dialling is a connection to be opened.
type dialling struct {
	address string
	params  params
	dialer  *wire.Dialer
	jar     http.CookieJar // nil without cookies
}

// systemTags are those that k6 gives to samples of a WebSocket.
func (o *dialling) systemTags(h handshake) map[string]string {
	tags := map[string]string{"url": o.address}
	if _, named := o.params.tags["name"]; !named {
		tags["name"] = o.address
	}
	if h.status != 0 {
		tags["status"] = strconv.Itoa(h.status)
	}
	if p := h.headers.Get("Sec-WebSocket-Protocol"); p != "" {
		tags["subproto"] = p
	}
	return tags
}

// drop ends the connection without a word. What it was about is over, so there
// is nothing to do about an error.
func (c *connection) drop() { _ = c.conn.Close() }

// write sends one message.
func (c *connection) write(kind int, data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := c.conn.WriteMessage(kind, data); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// ping sends a ping with a payload of its own, so that its pong is known.
func (c *connection) ping() error {
	c.pinging.Lock()
	c.nextID++
	payload := strconv.FormatUint(c.nextID, 10)
	c.pings[payload] = time.Now()
	c.pinging.Unlock()
	if err := c.conn.WriteControl(websocket.PingMessage, []byte(payload), time.Now().Add(writeLimit)); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// pong returns how long the answer to a ping took.
func (c *connection) pong(payload string) (time.Duration, bool) {
	c.pinging.Lock()
	defer c.pinging.Unlock()
	sent, ok := c.pings[payload]
	delete(c.pings, payload)
	return time.Since(sent), ok
}

// close sends a close frame and leaves the connection open for the answer.
func (c *connection) close(code int, reason string) error {
	err := c.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(writeLimit))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// closeCode returns with which code and reason a connection ended whose
// reading failed with err.
func closeCode(err error) (code int, reason string) {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return closed.Code, closed.Text
	}
	return websocket.CloseGoingAway, ""
}

// expected reports whether a connection ended as connections should.
func expected(err error) bool {
	return websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived)
}

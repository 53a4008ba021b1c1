package k6cases

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The WebSocket of the server: RFC 6455, no extensions, unfragmented frames.
//
// Text and binary frames are echoed. The text "close" makes the server close
// with code 1000; "drop" makes it drop the connection; "ping" makes it send a
// ping frame and answer "pong:PAYLOAD" once the pong arrives. With ?greet=1
// the server sends "hello" first. The subprotocol "echo.v1" is accepted.
// "headers:NAME" answers with that handshake header.

func wsEcho(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Sec-WebSocket-Key")
	if key == "" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.WriteHeader(400)
		return
	}
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	if strings.Contains(r.Header.Get("Sec-WebSocket-Protocol"), "echo.v1") {
		rw.WriteString("Sec-WebSocket-Protocol: echo.v1\r\n")
	}
	rw.WriteString("\r\n")
	rw.Flush()
	send := func(op byte, p []byte) {
		h := []byte{0x80 | op}
		switch {
		case len(p) < 126:
			h = append(h, byte(len(p)))
		case len(p) < 65536:
			h = append(h, 126, byte(len(p)>>8), byte(len(p)))
		default:
			h = append(h, 127)
			h = binary.BigEndian.AppendUint64(h, uint64(len(p)))
		}
		c.Write(append(h, p...))
	}
	if r.URL.Query().Get("greet") != "" {
		send(1, []byte("hello"))
	}
	for {
		op, p, err := wsFrame(rw.Reader)
		if err != nil {
			return
		}
		switch op {
		case 1:
			s := string(p)
			switch {
			case s == "close":
				send(8, binary.BigEndian.AppendUint16(nil, 1000))
				return
			case s == "drop":
				return
			case s == "ping":
				send(9, []byte("pp"))
			case strings.HasPrefix(s, "headers:"):
				send(1, []byte(r.Header.Get(s[8:])))
			default:
				send(1, p)
			}
		case 2:
			send(2, p)
		case 8:
			send(8, p)
			return
		case 9:
			send(10, p)
		case 10:
			send(1, []byte("pong:"+string(p)))
		}
	}
}

func wsFrame(r *bufio.Reader) (op byte, p []byte, err error) {
	var h [2]byte
	if _, err = io.ReadFull(r, h[:]); err != nil {
		return
	}
	op = h[0] & 15
	n := uint64(h[1] & 127)
	switch n {
	case 126:
		var b [2]byte
		if _, err = io.ReadFull(r, b[:]); err != nil {
			return
		}
		n = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		if _, err = io.ReadFull(r, b[:]); err != nil {
			return
		}
		n = binary.BigEndian.Uint64(b[:])
	}
	var mask [4]byte
	if h[1]&0x80 != 0 {
		if _, err = io.ReadFull(r, mask[:]); err != nil {
			return
		}
	}
	p = make([]byte, n)
	if _, err = io.ReadFull(r, p); err != nil {
		return
	}
	for i := range p {
		p[i] ^= mask[i%4]
	}
	return
}

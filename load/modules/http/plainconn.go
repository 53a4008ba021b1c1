package k6http

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"
)

// plainConn is a connection that one request uses at a time.
type plainConn struct {
	*conn
	address string
	r       *bufio.Reader
	w       *bufio.Writer
	raw     syscall.RawConn
	done    <-chan struct{} // of the context of the request; its end interrupts reads and writes
	room    int64           // bytes that may still be read; negative is no limit
	since   time.Time       // it has been idle
}

const (
	maxHeaderBytes = 10 << 20
	maxEarlyHints  = 5 // informational responses before the one that counts
)

var errHeaderTooLarge = errors.New("read response: its header is larger than 10 MiB")

// exchange sends a request and reads the header of the response. Answered
// tells whether any of it came.
func (c *plainConn) exchange(req *http.Request, t *tracer) (res *http.Response, answered bool, err error) {
	if err = req.Write(c.w); err == nil {
		err = c.w.Flush()
	}
	if err != nil {
		return nil, false, err
	}
	t.wroteRequest()
	c.room = maxHeaderBytes
	if _, err = c.r.Peek(1); err != nil {
		return nil, false, err
	}
	t.gotFirstByte()
	for range maxEarlyHints {
		if res, err = http.ReadResponse(c.r, req); err != nil {
			return nil, true, err
		}
		if res.StatusCode >= http.StatusOK || res.StatusCode == http.StatusSwitchingProtocols {
			c.room = -1
			return res, true, nil
		}
	}
	return nil, true, fmt.Errorf("read response: more than %d informational ones", maxEarlyHints)
}

// Read reads what the server sends, within the room that is left for it.
func (c *plainConn) Read(b []byte) (int, error) {
	if c.room == 0 {
		return 0, errHeaderTooLarge
	}
	if c.room > 0 && int64(len(b)) > c.room {
		b = b[:c.room]
	}
	n, err := c.conn.Read(b)
	if c.room > 0 {
		c.room -= int64(n)
	}
	return n, err
}

// stands reports whether an idle connection is still open and silent.
func (c *plainConn) stands() bool {
	if c.raw == nil {
		return true
	}
	silent := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = err == syscall.EAGAIN
		return true
	})
	return err == nil && silent
}

// ended reports whether the rest of a body, up to a bound, is nothing more to
// read, so that its connection can serve again.
func ended(body io.Reader, limit int64) bool {
	n, err := io.CopyN(io.Discard, body, limit+1)
	return n <= limit && errors.Is(err, io.EOF)
}

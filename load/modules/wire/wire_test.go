package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grafana/sobek"
	"go.uber.org/goleak"

	"github.com/metachaos/metachaos/load/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopHost is a host with an event loop and nothing else.
type loopHost struct {
	script.Host
	jobs chan func() error
	mu   sync.Mutex
	open int
}

func (h *loopHost) RegisterCallback() func(func() error) {
	h.mu.Lock()
	h.open++
	h.mu.Unlock()
	return func(job func() error) {
		h.mu.Lock()
		h.open--
		h.mu.Unlock()
		h.jobs <- job
	}
}

// run runs jobs until nothing keeps the iteration open or one fails.
func (h *loopHost) run(t *testing.T) error {
	t.Helper()
	for {
		h.mu.Lock()
		open := h.open
		h.mu.Unlock()
		if open == 0 && len(h.jobs) == 0 {
			return nil
		}
		if err := (<-h.jobs)(); err != nil {
			return err
		}
	}
}

func TestQueueKeepsTheOrderAndTheIterationOpen(t *testing.T) {
	h := &loopHost{jobs: make(chan func() error, 10_000)}
	q := NewQueue(h)
	var got []int
	go func() {
		for i := range 1000 {
			q.Push(func() error { got = append(got, i); return nil })
		}
		q.Close()
		q.Close()
		q.Push(func() error { return errors.New("pushed after Close") })
	}()
	if err := h.run(t); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1000 || !slices.IsSorted(got) {
		t.Errorf("%d events, sorted %v", len(got), slices.IsSorted(got))
	}
}

func TestQueueEndsWithTheFirstError(t *testing.T) {
	h := &loopHost{jobs: make(chan func() error, 10)}
	q := NewQueue(h)
	failure := errors.New("thrown")
	q.Push(func() error { return failure })
	q.Push(func() error { t.Error("an event after the error"); return nil })
	if err := h.run(t); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	q.Push(func() error { t.Error("an event after the end"); return nil })
	for len(h.jobs) > 0 {
		if err := (<-h.jobs)(); err != nil {
			t.Error(err)
		}
	}
}

func TestHosts(t *testing.T) {
	o := Options{Hosts: map[string]string{"a.test": "10.0.0.1", "a.test:81": "10.0.0.2:8080", "*.b.test": "10.0.0.3", "*.x.b.test": "[::1]"}}
	for address, want := range map[string]string{
		"a.test:80": "10.0.0.1:80", "a.test:81": "10.0.0.2:8080", "A.TEST:82": "10.0.0.1:82", "y.b.test:1": "10.0.0.3:1",
		"y.x.b.test:1": "[::1]:1", "b.test:1": "b.test:1", "other:9": "other:9",
	} {
		host, port, _ := net.SplitHostPort(address)
		if got := o.redirect(host, port); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

func TestDialerCountsAndRefuses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			fmt.Fprint(conn, "hello")
			conn.Close()
		}
	}()
	d := &Dialer{}
	conn, err := d.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "abc")
	buffer := make([]byte, 10)
	n, _ := conn.Read(buffer)
	conn.Close()
	if sent, received := d.Take(); sent != 3 || received != int64(n) || n == 0 {
		t.Errorf("sent %d, received %d of %d", sent, received, n)
	}
	for cidr, want := range map[string]string{"127.0.0.0/8": "blacklistIPs blocks 127.0.0.1", "127.0.0.1": "blacklistIPs blocks"} {
		d := &Dialer{Options: Options{BlacklistIPs: []string{cidr}}}
		if _, err := d.DialContext(context.Background(), "tcp", listener.Addr().String()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", cidr, err)
		}
	}
}

func TestReadOptions(t *testing.T) {
	if _, err := ReadOptions(&script.Options{All: script.Layer{"blacklistIPs": []byte(`["ten"]`)}}); err == nil || !strings.Contains(err.Error(), `"ten"`) {
		t.Errorf("got %v", err)
	}
	o, err := ReadOptions(&script.Options{All: script.Layer{"insecureSkipTLSVerify": []byte("true"), "userAgent": []byte(`"u"`), "vus": []byte("3")}})
	if err != nil || !o.TLS().InsecureSkipVerify || o.UserAgent != "u" {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestBytesAndDurations(t *testing.T) {
	rt := sobek.New()
	for source, want := range map[string]string{"new Uint8Array([1,2]).buffer": "[1 2]", "new Uint8Array([1,2,3]).subarray(1)": "[2 3]",
		"new Uint16Array([1])": "[1 0]", "new DataView(new ArrayBuffer(2))": "[0 0]"} {
		v, err := rt.RunString(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Bytes(v); !ok || fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, %v", source, got, ok)
		}
	}
	for source, want := range map[string]string{"1500": "1.5s", "'1m30s'": "1m30s", "'2s'": "2s"} {
		v, _ := rt.RunString(source)
		if got, err := Duration(v); err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v", source, got, err)
		}
	}
	for _, source := range []string{"'soon'", "({})", "true", "(() => 1)"} {
		v, _ := rt.RunString("(" + source + ")")
		if got, err := Duration(v); err == nil {
			t.Errorf("%s: got %v, want an error", source, got)
		}
	}
	if _, ok := Bytes(rt.ToValue("text")); ok {
		t.Error("text has no bytes of its own")
	}
}

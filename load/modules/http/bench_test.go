package k6http

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/metachaos/metachaos/load/script"
	"github.com/metachaos/metachaos/results"
)

// serverVariable has the test program serve, so that a benchmark does not
// measure the server along.
const serverVariable = "METACHAOS_BENCH_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		if err := serveBenchmark(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveBenchmark serves until its standard input ends.
func serveBenchmark() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	content := []byte(`{"ok":true,"n":1234567890}`)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(content)
	}))
	if strings.Contains(err.Error(), net.ErrClosed.Error()) {
		return nil
	}
	return err
}

func benchmarkServer(b *testing.B) string {
	b.Helper()
	c := exec.CommandContext(b.Context(), os.Args[0])
	c.Env = append(os.Environ(), serverVariable+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line) + "/"
}

// cpu returns the CPU time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure reports CPU seconds of this process per 100,000 requests.
func measure(b *testing.B, run func()) {
	before := cpu(b)
	b.ResetTimer()
	run()
	b.StopTimer()
	b.ReportMetric((cpu(b)-before).Seconds()/float64(b.N)*100_000, "cpu-s/100k")
}

const benchmarkConnections = 64

type discarding struct{}

func (discarding) Record(...results.Sample) {}

type sinceStart struct{ start time.Time }

func (s sinceStart) Now() time.Duration { return time.Since(s.start) }

// BenchmarkRequests compares what a request costs in a script with a loop
// around net/http.
func BenchmarkRequests(b *testing.B) {
	b.Run("net/http loop", func(b *testing.B) {
		url := benchmarkServer(b)
		c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchmarkConnections, DisableCompression: true}}
		defer c.CloseIdleConnections()
		var left atomic.Int64
		left.Store(int64(b.N))
		measure(b, func() {
			var all sync.WaitGroup
			for range benchmarkConnections {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						res, err := c.Get(url)
						if err != nil {
							b.Error(err)
							return
						}
						io.Copy(io.Discard, res.Body)
						res.Body.Close()
					}
				})
			}
			all.Wait()
		})
	})
	for _, c := range []struct{ name, code string }{
		{"http.get", `http.get(__ENV.B);`},
		{"http.get and check", `check(http.get(__ENV.B), { ok: (r) => r.status === 200 });`},
		{"tags, headers, check json", `check(http.get(__ENV.B, { tags: { name: 'x' }, headers: { 'X-A': 'b' } }), { ok: (r) => r.json('ok') === true });`},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkScript(b, c.code) })
	}
}

func benchmarkScript(b *testing.B, code string) {
	url := benchmarkServer(b)
	text := fmt.Sprintf(`import http from 'k6/http'; import { check } from 'k6';
		export const options = { scenarios: { s: { executor: 'shared-iterations', vus: %d, iterations: %d, maxDuration: '1h' } } };
		export default function () { %s }`, benchmarkConnections, max(b.N, benchmarkConnections), code)
	p, err := script.Load(context.Background(), script.Source{Path: "b.js", Code: []byte(text)},
		script.Config{Modules: map[string]script.Module{ImportPath: New()}, Env: map[string]string{"B": url}})
	if err != nil {
		b.Fatal(err)
	}
	measure(b, func() {
		if _, err := script.Execute(context.Background(), p, script.RunConfig{Recorder: discarding{}, Clock: sinceStart{time.Now()}}); err != nil {
			b.Fatal(err)
		}
	})
}

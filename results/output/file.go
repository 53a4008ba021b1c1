package output

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/metachaos/metachaos/results"
)

// encoder writes samples in one format. One goroutine uses it.
type encoder interface {
	// header writes what stands before the first sample.
	header(w *bufio.Writer) error
	sample(w *bufio.Writer, s *results.Sample) error
}

// file is an output to a file or to standard output.
type file struct {
	env     Env
	path    string // "" and "-" are standard output
	every   time.Duration
	encoder func(Run) encoder
	queue   *queue
	done    chan struct{} // closed when the writing goroutine has ended

	// What the writing goroutine owns until done is closed.
	w       *bufio.Writer
	closers []io.Closer // innermost first
	err     error       // the first
	unsaved uint64      // samples since the last flush that went well
	dropped uint64      // samples that came after err
}

var _ Output = (*file)(nil)

const bufferSize = 64 << 10

func newFile(env Env, path string, every time.Duration, e func(Run) encoder) *file {
	return &file{env: env, path: path, every: every, encoder: e, queue: newQueue(queuedBatches, patience), done: make(chan struct{})}
}

// Start opens the file and starts to write; see [Output].
func (f *file) Start(_ context.Context, run Run) error {
	if err := f.open(); err != nil {
		return fmt.Errorf("open output %s: %w", f.name(), err)
	}
	e := f.encoder(run)
	f.fail(e.header(f.w))
	go f.run(e)
	return nil
}

func (f *file) name() string {
	if f.path == "" || f.path == "-" {
		return "standard output"
	}
	return f.path
}

func (f *file) open() error {
	target := f.env.Stdout
	if f.name() == f.path {
		created, err := f.env.Create(f.path)
		if err != nil {
			return err
		}
		target, f.closers = created, []io.Closer{created}
	}
	if strings.HasSuffix(f.path, ".gz") {
		z := gzip.NewWriter(target)
		target, f.closers = z, append([]io.Closer{z}, f.closers...)
	}
	f.w = bufio.NewWriterSize(target, bufferSize)
	return nil
}

// Record hands samples to the writing goroutine; see [Output].
func (f *file) Record(samples ...results.Sample) { f.queue.put(samples) }

func (f *file) run(e encoder) {
	defer close(f.done)
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		select {
		case batch, open := <-f.queue.batches:
			if !open {
				f.close()
				return
			}
			f.write(e, batch)
		case <-tick.C:
			f.flush()
		}
	}
}

func (f *file) write(e encoder, batch []results.Sample) {
	for i := range batch {
		if f.err != nil {
			f.dropped++
			continue
		}
		f.unsaved++
		f.fail(e.sample(f.w, &batch[i]))
	}
}

func (f *file) flush() {
	if f.err == nil {
		f.fail(f.w.Flush())
	}
	if f.err == nil {
		f.unsaved = 0
	}
}

func (f *file) close() {
	f.flush()
	for _, c := range f.closers {
		f.fail(c.Close())
	}
}

// fail notes the first error and tells of it at once: the run may be long.
func (f *file) fail(err error) {
	if err == nil || f.err != nil {
		return
	}
	f.err = err
	f.env.Logger.Error(fmt.Sprintf("output %s: %v; further samples are not written", f.name(), err))
}

// Stop writes what is queued and closes the file; see [Output].
func (f *file) Stop(ctx context.Context) error {
	f.queue.close()
	select {
	case <-f.done:
	case <-ctx.Done():
		return fmt.Errorf("close output %s: it is stuck: %w", f.name(), context.Cause(ctx))
	}
	lost := f.queue.lost.Load() + f.dropped
	var errs []error
	if f.err != nil {
		lost += f.unsaved
		errs = append(errs, f.err)
	}
	if lost > 0 {
		errs = append(errs, fmt.Errorf("%d samples are lost", lost))
	}
	if len(errs) > 0 {
		return fmt.Errorf("write output %s: %w", f.name(), errors.Join(errs...))
	}
	return nil
}

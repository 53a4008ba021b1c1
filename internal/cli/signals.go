package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that the first interrupt or termination
// signal ends. Taking faults back is bounded, so a second signal is only
// answered; a third ends the process, and the journal keeps what is left.
func (a *app) untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case s := <-signals:
				switch n {
				case 1:
					fmt.Fprintf(a.Err, "metachaos: %s: stopping the load and taking the faults back\n", s)
					cancel(fmt.Errorf("signal %s", s))
				case 2:
					fmt.Fprintln(a.Err, "metachaos: still taking the faults back; a third signal gives up, and metachaos doctor can go on later")
				default:
					signal.Stop(signals)
					self, _ := os.FindProcess(os.Getpid()) // cannot fail for oneself
					_ = self.Kill()
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

package traffic

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCurtail ends tests of a minute within their measured window: the result covers what was
// measured until then, has a warning about it, and the channel is in step.
func TestCurtail(t *testing.T) {
	t.Parallel()
	amount := shortSpec(Stream)
	amount.Bytes, amount.RateBitsPerSec = 1<<40, 1e8
	datagrams := shortSpec(UDP)
	datagrams.RateBitsPerSec = 1e6
	both := shortSpec(Stream)
	both.Direction = Bidir
	for name, spec := range map[string]Spec{"stream": both, "rr": shortSpec(RR), "udp": datagrams, "amount": amount} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if spec.Test == UDP {
				onlyLinux(t)
				w.withEcho(t)
			}
			spec.Duration, spec.Interval = time.Minute, 100*time.Millisecond
			curtail := make(chan struct{})
			w.link.Curtail = curtail
			end := sync.OnceFunc(func() { close(curtail) })
			done := w.serve(t.Context())
			// The first interval of the window may be one in which the machine gave no thread any CPU.
			r, err := Run(t.Context(), w.link, spec, func(i Interval) {
				if !i.Omitted && i.ThroughputBitsPerSec+i.TransactionsPerSec > 0 {
					end()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.DurationSeconds <= 0 || r.DurationSeconds >= 60 || len(r.Intervals) == 0 {
				t.Errorf("measured for %v s in %d intervals", r.DurationSeconds, len(r.Intervals))
			}
			if !strings.Contains(strings.Join(r.Warnings, "\n"), "interrupted: measured for ") {
				t.Errorf("warnings %q", r.Warnings)
			}
			if r.ThroughputBitsPerSec+r.TransactionsPerSec <= 0 {
				t.Error("nothing was measured")
			}
			if err := <-done; err != nil {
				t.Errorf("far: %v", err)
			}
		})
	}
}

// TestCurtailBeforeTheWindow ends a test that has measured nothing yet: in its warm-up, and before
// it was accepted.
func TestCurtailBeforeTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := shortSpec(Stream)
	spec.WarmUp, spec.Interval = time.Minute, 100*time.Millisecond
	curtail := make(chan struct{})
	w.link.Curtail = curtail
	done := w.serve(t.Context())
	end := sync.OnceFunc(func() { close(curtail) })
	if _, err := Run(t.Context(), w.link, spec, func(Interval) { end() }); !errors.Is(err, context.Canceled) {
		t.Errorf("in the warm-up: %v", err)
	}
	if err := <-done; err == nil {
		t.Error("the far side thinks that the test came to its end")
	}
	// No far end answers: the near end ends at once, because the channel is closed already, and
	// waits for a last message.
	w = newWorld(t)
	w.link.timing = noGoodbye
	w.link.Curtail = curtail
	if _, err := Run(t.Context(), w.link, spec, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("before it was accepted: %v", err)
	}
}

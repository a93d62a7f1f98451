package dialect

import (
	"context"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// sleeper has sent its block, and sleeps on after it has found that the time is over.
type sleeper struct {
	worker  *engine.Worker
	noticed time.Time
}

func (s *sleeper) Loop(w *engine.Worker) error {
	for w.Phase.Is() != engine.Stopped {
		time.Sleep(time.Millisecond)
	}
	s.noticed = time.Now()
	time.Sleep(100 * time.Millisecond)
	return nil
}

func (s *sleeper) Wake()                                         {}
func (s *sleeper) Close()                                        {}
func (s *sleeper) Senders() []*engine.Worker                     { return []*engine.Worker{s.worker} }
func (s *sleeper) Receivers() []*engine.Worker                   { return nil }
func (s *sleeper) Datagrams() []*datagram.Sender                 { return nil }
func (s *sleeper) Done() <-chan struct{}                         { return nil }
func (s *sleeper) Arrivals() []*datagram.Receiver                { return nil }
func (s *sleeper) EndSending() error                             { return nil }
func (s *sleeper) Finish(context.Context, *traffic.Result) error { return nil }

// TestSleepIsNoTime: a sender with a rate sleeps beyond the end of its test, until the next block
// would be due. The rate is that of the time in which its bytes arrived.
func TestSleepIsNoTime(t *testing.T) {
	t.Parallel()
	spec := traffic.Spec{Test: traffic.Stream, Duration: 100 * time.Millisecond, RateBitsPerSec: 1e6}
	c, err := newConductor("ttcp", "192.0.2.1", 1, spec, ClientOptions{}, func(traffic.Interval) {})
	if err != nil {
		t.Fatal(err)
	}
	s := &sleeper{}
	r, err := c.run(t.Context(), func(m means) (test, error) {
		s.worker = engine.New(engine.Sender, m.Out, s)
		s.worker.Bytes.Add(1000)
		return s, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Duration(r.DurationSeconds * 1e9)
	if most := s.noticed.Sub(r.StartTime); took < spec.Duration || took > most || r.Bytes != 1000 {
		t.Errorf("%d bytes in %v, want 1000 in %v to %v", r.Bytes, took, spec.Duration, most)
	}
}

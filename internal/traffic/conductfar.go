package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// farConductor conducts the far end: it follows the near end, and holds the test to what this host
// allows.
type farConductor struct {
	conductor
	limits         Limits            // filled in
	spend          func(int64) error // charges payload bytes to the client's budget; nil: no budget
	charged        int64             // bytes charged so far
	exchange       int64             // payload bytes of one transaction, both messages together
	longer         int64             // payload bytes of the longer one of them
	reportedSteady bool              // test.steady is sent
}

func newFarConductor(spec Spec, s *session, p *engine.Phase, side cast, limits Limits) *farConductor {
	c := &farConductor{conductor: newConductor(spec, s, p, side), limits: limits.Filled()}
	c.cpus, c.exchange = spec.FarCPUs, int64(spec.RequestBytes+spec.ResponseBytes)
	c.longer = int64(max(spec.RequestBytes, spec.ResponseBytes))
	return c
}

// run conducts the test until the near end stops it. However it returns, all workers have ended and
// their connections are closed.
func (c *farConductor) run(ctx context.Context) error {
	stop := c.begin()
	defer func() { c.settleUp(stop()) }()
	return c.conduct(ctx, c)
}

func (c *farConductor) handle(m wire.Message) (over bool, err error) {
	// The phase is part of each rule: a second test.mark would open the window anew and discard
	// what was measured.
	switch phase := c.phase.Is(); {
	case m.Type == msgMark && phase == engine.Warm:
		c.window.before = c.counters()
		c.open()
		c.session.post(msgOpened, nil)
	case m.Type == msgCurtail && phase == engine.Measured:
		c.times.window = c.now() - c.window.open.at
	case m.Type == msgCurtail && phase == engine.Tail: // its time was over anyway
	case m.Type == msgStop && phase == engine.Tail:
		return true, nil
	default:
		return false, c.conductor.handle(m)
	}
	return false, nil
}

// warm reports a steady rate, once.
func (c *farConductor) warm(time.Duration) {
	if c.steady && !c.reportedSteady {
		c.reportedSteady = true
		c.session.post(msgSteady, nil)
	}
}

func (c *farConductor) due() time.Duration       { return never }
func (c *farConductor) counted()                 { c.session.post(msgDone, nil) }
func (c *farConductor) finished() bool           { return false } // test.stop ends it
func (c *farConductor) curtail() <-chan struct{} { return nil }   // test.curtail does
func (c *farConductor) curtailed() error         { return nil }

// moved refuses a test that moves more than this host allows, whatever its Spec has promised.
func (c *farConductor) moved(r reading) error {
	// The budget comes first: a client that has used it up reads that, and not the bound that
	// follows from its remainder.
	if err := c.charge(r); err != nil {
		return fmt.Errorf("%w: %w", errRefusing, err)
	}
	moved := max(r.bytes-c.first.bytes, r.sent) + (r.transactions-c.first.transactions)*c.longer
	if most := c.limits.MaxBytes; most > 0 && moved > most {
		return fmt.Errorf("%w: more than the %d bytes this host allows", errRefusing, most)
	}
	// One second's worth may come at once, since buffers on the way fill and empty; and headers
	// are no payload of the test.
	if most := c.limits.MaxBitsPerSecond; most > 0 && float64(moved)*8 > most*1.1*(r.at.Seconds()+1) {
		text := ""
		if c.transactions {
			text = ": ask for smaller messages, or for fewer streams"
		}
		return fmt.Errorf("%w: more than the %v this host allows%s", errRefusing, unit.BitRate(most), text)
	}
	if most := c.limits.MaxPacketsPerSecond; most > 0 && float64(r.packets) > most*1.1*(r.at.Seconds()+1) {
		return fmt.Errorf("%w: more than the %.6g packets per second this host allows", errRefusing, most)
	}
	return nil
}

// charge charges what was moved since its last call. Transactions count with the payload of both
// messages.
func (c *farConductor) charge(r reading) error {
	if c.spend == nil {
		return nil
	}
	moved := r.bytes - c.first.bytes + r.sent - c.first.sent + (r.transactions-c.first.transactions)*c.exchange
	n := max(0, moved-c.charged)
	c.charged += n
	return c.spend(n)
}

// settleUp charges what was moved since the last look, however the test ended: otherwise a near end
// that stops early, again and again, would move much for free. It is too late to end the test for
// it, so an error has no consequence here; the next test meets it.
//
// The workers have ended, because a call counts what it moves only when it returns. Their
// connections are closed by then, so what was received is that of the parting reading.
func (c *farConductor) settleUp(parting reading) {
	if c.spend == nil {
		return
	}
	parting.sent, parting.transactions = 0, 0
	for _, w := range c.workers {
		switch {
		case w.Role == engine.Sender:
			parting.sent += w.Bytes.Load()
		case w != c.beside:
			parting.transactions += w.Transactions.Load()
		}
	}
	_ = c.charge(parting)
}

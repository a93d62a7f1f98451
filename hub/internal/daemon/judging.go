package daemon

import (
	"context"
	"time"

	"github.com/linerate/linerate/hub/internal/switches"
	"github.com/linerate/linerate/internal/experiment/loop"
)

// The hub diagnoses this host at this interval, and watches it for this long.
const (
	judgeEvery = time.Minute
	judgeWatch = 3 * time.Second
)

// judgeHost diagnoses this host each minute as `linerate diagnose` does without a peer. It sends
// nothing and changes nothing. Findings of the switches that the hub reads are joined to its own.
func (d *daemon) judgeHost(ctx context.Context) {
	look := func() {
		v, err := loop.Watch(ctx, loop.WatchOptions{Duration: judgeWatch})
		if ctx.Err() != nil {
			return
		}
		if d.board.problem("verdicts", err) {
			d.report("verdicts", err)
		}
		if err != nil {
			return
		}
		now := time.Now()
		ports, attached := d.switches.Findings()
		found := switches.Join(v.Findings, ports, attached)
		d.board.judge(now, found)
		d.follower.Findings(now, found)
	}
	look()
	for range ticks(ctx, judgeEvery) {
		look()
	}
}

package daemon

import (
	"context"
	"time"

	"github.com/linerate/linerate/internal/experiment/loop"
)

// The verdict on this host: how often, and how long it is watched for it.
const (
	judgeEvery = time.Minute
	judgeWatch = 3 * time.Second
)

// judgeHost asks each minute what `linerate diagnose` says of this host without a peer. Nothing is
// sent and nothing changed for it.
func (d *daemon) judgeHost(ctx context.Context) {
	look := func() {
		v, err := loop.Watch(ctx, loop.WatchOptions{Duration: judgeWatch})
		if ctx.Err() != nil {
			return
		}
		if d.board.problem("verdicts", err) {
			d.told("verdicts", err)
		}
		if err != nil {
			return
		}
		now := time.Now()
		d.board.judge(now, v.Findings)
		d.follower.Findings(now, v.Findings)
	}
	look()
	for range ticks(ctx, judgeEvery) {
		look()
	}
}

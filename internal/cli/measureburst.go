package cli

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
)

// addBurstBounds adds to the result of a burst test what the queues of both hosts should hold. A
// host that cannot be read leaves a warning: the measured figure does not depend on it.
func addBurstBounds(ctx context.Context, client *peer.Client, spec traffic.Spec, r *traffic.Result) {
	if r.Burst == nil {
		return
	}
	near, err := host.Root{}.Snapshot(ctx)
	if err != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("what the queues should hold is not known: read this host: %v", err))
		return
	}
	far, err := client.Snapshot(ctx)
	if err != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("what the queues should hold is not known: read the far host: %v", err))
		return
	}
	loop.BurstBounds(r, spec, near, far)
}

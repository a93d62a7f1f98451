package host

import (
	"context"
	"runtime"

	"github.com/linerate/linerate/internal/kernel/tool"
)

func complete(ctx context.Context, s *Snapshot, said *notes) {
	completeSolaris(ctx, s, tool.System{}, said)
	said.say("buses, offloads, rings, queues and routes: not supported: linerate reads them only on linux; " +
		"this system is " +
		runtime.GOOS)
}

func nativeCounters() (*Counters, error) { return countSolaris(context.Background(), tool.System{}) }

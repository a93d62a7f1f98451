package host

import (
	"context"

	"github.com/linerate/linerate/internal/kernel/tool"
)

func complete(ctx context.Context, s *Snapshot, said *notes) {
	completeWindows(ctx, s, tool.System{}, said)
	said.say("buses, offloads, rings, queues and routes: not supported: linerate reads them only on linux; " +
		"this system is " +
		"windows")
}

func nativeCounters() (*Counters, error) { return countWindows(context.Background(), tool.System{}) }

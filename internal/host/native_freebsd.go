package host

import (
	"context"

	"github.com/linerate/linerate/internal/kernel/mib"
	"github.com/linerate/linerate/internal/kernel/tool"
)

func complete(ctx context.Context, s *Snapshot, said *notes) {
	completeFreeBSD(ctx, s, tool.System{}, mib.Kernel{}, said)
	said.say("buses, rings, queues and routes: not supported: linerate reads them only on linux; this system is freebsd")
}

func nativeCounters() (*Counters, error) {
	return countFreeBSD(context.Background(), tool.System{}, mib.Kernel{})
}

package journal_test

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// A trial on a host in memory: applied, then undone. Only the journal writes to the host.
func ExampleJournal_Apply() {
	ctx := context.Background()
	host := knob.NewMemory(map[knob.ID]knob.Value{"link:eth0/mtu": "1500"})
	j, err := journal.Open(journal.Options{
		Dir: "/state", FS: durable.NewMem(), Backend: host, Unguarded: true, BootID: "boot-1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()

	changes, err := j.Apply(ctx, journal.Request{Reason: "larger frames"},
		knob.Setting{Knob: "link:eth0/mtu", Value: "9000"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(changes[0].Knob, changes[0].From, "→", changes[0].To, changes[0].State)

	outcomes, err := j.UndoAll(ctx)
	value, _ := host.Read(ctx, "link:eth0/mtu")
	fmt.Println(value, outcomes[0].Change.State, err)
	// Output:
	// link:eth0/mtu 1500 → 9000 trial
	// 1500 undone <nil>
}

package journal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// TestInterfaceMoves: an interface leaves for another network namespace while trials are in force.
// Its own settings go with it, so their changes stay open until it is back; the kernel ends the
// others.
func TestInterfaceMoves(t *testing.T) {
	const leave = "mount -t tmpfs none /run; ip netns add other; "
	for name, test := range map[string]struct{ leave, back string }{
		"and comes back": {"ip link set a0 netns other", "ip -n other link set a0 netns $NS"},
		// Docker and others rename what they move.
		"under another name": {"ip link set a0 netns other name eth0", "ip -n other link set eth0 netns $NS name lan0"},
		"where its index is taken": {`ip -n other link add c0 index $(cat /sys/class/net/a0/ifindex) type veth
			ip link set a0 netns other`, "ip -n other link set a0 netns $NS"},
		"and another one has its name": {"ip link set a0 netns other; ip link add a0 mtu 9000 type veth",
			"ip -n other link set a0 netns $NS name lan0"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func() {
				state := t.TempDir()
				j := liveJournal(t, state)
				apply(t, j, journal.Request{}, ofInterface...)
				must(t, leave+test.leave)
				outcomes, err := j.UndoAll(t.Context())
				if !errors.Is(err, journal.ErrAway) || len(outcomes) != len(ofInterface)/2 {
					t.Errorf("%+v, %v", outcomes, err)
				}
				const note = "not taken back: its interface was moved to network namespace net:["
				waiting := 0
				for _, o := range outcomes {
					switch o.Change.Knob.Kind() {
					case knob.KindSysctl, knob.KindQdisc:
						if o.Restored || o.Error != "" || o.Change.State != journal.Undone {
							t.Errorf("the kernel ended it: %+v", o)
						}
					default:
						waiting++
						if o.Restored || o.Change.State != journal.Trial || !strings.HasPrefix(o.Change.Note, note) {
							t.Errorf("its value left with the interface: %+v", o)
						}
					}
				}
				j.Close()
				// The next process knows it too, and says so once more when it is asked.
				changes, err := journal.History(durable.OS(), state)
				for _, c := range changes {
					if err != nil || (c.State == journal.Trial) != strings.HasPrefix(c.Note, note) || c.Unguarded {
						t.Errorf("%+v, %v", c, err)
					}
				}
				j = liveJournal(t, state)
				if left, err := j.Recover(t.Context()); !errors.Is(err, journal.ErrAway) || len(left) != waiting {
					t.Errorf("%+v, %v", left, err)
				}
				must(t, `ip -n other link show >/dev/null; touch /run/here; mount --bind /proc/self/ns/net /run/here
					`+strings.ReplaceAll(test.back, "$NS", "/run/here"))
				left, err := j.Recover(t.Context())
				if err != nil || len(left) != waiting {
					t.Errorf("%+v, %v", left, err)
				}
				for _, o := range left {
					if !o.Restored {
						t.Errorf("%+v", o)
					}
				}
				lan := "a0"
				if strings.Contains(test.back, "lan0") {
					lan = "lan0"
				}
				for id, want := range map[string]knob.Value{"mtu": "1500", "txqueuelen": "1000"} {
					got, err := processOptions("live", state).Backend.Read(t.Context(), knob.ID("link:"+lan+"/"+id))
					if got != want || err != nil {
						t.Errorf("%s of %s: %s, %v", id, lan, got, err)
					}
				}
			})
		})
	}
}

// TestInterfaceEndsElsewhere: an interface that is removed in the namespace that it was moved to is
// gone, and so are its changes.
func TestInterfaceEndsElsewhere(t *testing.T) {
	inWorld(t, func() {
		j := liveJournal(t, t.TempDir())
		apply(t, j, journal.Request{}, "link:a0/mtu", "9000")
		must(t, "mount -t tmpfs none /run; ip netns add other; ip link set a0 netns other")
		if _, err := j.UndoAll(t.Context()); !errors.Is(err, journal.ErrAway) {
			t.Errorf("%v", err)
		}
		must(t, "ip -n other link del a0")
		outcomes, err := j.UndoAll(t.Context())
		if err != nil || len(outcomes) != 1 || outcomes[0].Change.State != journal.Undone ||
			!strings.HasPrefix(outcomes[0].Change.Note, "undone; the knob no longer exists") {
			t.Errorf("%+v, %v", outcomes, err)
		}
	})
}

package journal_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// TestGuardMissesAnInterface: the interface of a trial is not there at the deadline. The guard says
// so once, and the history says whether the value is gone or waits elsewhere.
func TestGuardMissesAnInterface(t *testing.T) {
	for name, test := range map[string]struct {
		there journal.Identity
		known bool
		state journal.State
		note  string
	}{
		"deleted": {journal.Identity{}, true, journal.Undone,
			"undone by guard: deadline passed; the knob no longer exists"},
		"perhaps deleted": {journal.Identity{}, false, journal.Undone, "undone by guard: deadline passed; " +
			"the knob no longer exists, unless it is in a network namespace that linerate may not look into"},
		"moved": {journal.Identity{Namespace: "net:[2]", Device: "4", Address: "02:00:00:00:00:07"}, true, journal.Trial,
			"not taken back: its interface was moved to network namespace net:[2] and keeps the value; " +
				"undo the change when the interface is back"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gone atomic.Bool
				looks := 0
				b := newBenchOn(t, journal.Deadline, 0, func(fsys durable.FS) durable.FS { return fsys },
					func(o *journal.Options) {
						o.Identify = func(knob.ID) journal.Identity {
							if gone.Load() {
								return journal.Identity{Namespace: "net:[1]"}
							}
							return journal.Identity{Namespace: "net:[1]", Device: "7", Address: "02:00:00:00:00:07"}
						}
						o.Elsewhere = func(i journal.Identity, name string) (journal.Identity, bool) {
							looks++
							if i.Device != "7" || "link:"+name+"/mtu" != string(mtu) {
								t.Errorf("%+v, %s", i, name)
							}
							return test.there, test.known
						}
					})
				apply(t, b.writer, journal.Request{For: time.Minute}, string(mtu), "9000")
				synctest.Wait() // the guard has the records
				b.say("detach")
				b.die()
				b.host.mu.Lock()
				gone.Store(true)
				delete(b.host.values, mtu)
				b.host.mu.Unlock()
				err := <-b.done
				if (err != nil) != (test.state == journal.Trial) {
					t.Errorf("guard: %v", err)
				}
				changes, err := journal.History(b.fsys, "/state")
				if err != nil || len(changes) != 1 || changes[0].State != test.state || changes[0].Note != test.note {
					t.Errorf("%+v, %v", changes, err)
				}
				notices := journal.TakeNotices(b.fsys, "/state")
				said := strings.TrimPrefix(test.note, "not taken back: ")
				if len(notices) != 1 || !strings.HasSuffix(notices[0], said) {
					t.Errorf("%q", notices)
				}
				if n := strings.Count(b.log.String(), fmt.Sprintf("change 0001 of %s, ", mtu)); n != 1 || looks != 1 {
					t.Errorf("said %d times after %d looks:\n%s", n, looks, b.log.String())
				}
			})
		})
	}
}

package traffic

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// kind is what one test does in its own way. The control protocol, the sampling, the measured
// window and the bounds on every wait are the same for all tests and know none of them by name.
//
// A kind has no state. What a run of it needs is in the [cast] that near and far return.
type kind interface {
	// traits returns the facts about the test that shared code needs.
	traits() traits
	// fill sets the defaults of the fields of a Spec that the test uses in its own way.
	fill(s *Spec)
	// check returns what is wrong with those fields in one sentence; "": nothing is wrong.
	check(s Spec) string
	// near opens the near end of an accepted test.
	near(ctx context.Context, n *nearEnd) (cast, error)
	// far accepts the test by f.accept and opens the far end.
	far(ctx context.Context, f *farEnd) (cast, error)
	// interval fills in what both ends counted during one interval.
	interval(i *Interval, d Direction, own, far part)
	// result fills in what both ends counted inside the window. It returns the number of packets
	// that carried the payload, over which the CPU time is spread.
	result(r *Result, o outcome) (packets uint64)
}

// kinds registers every test, in the order in which error messages list them.
var kinds = []struct {
	name Test
	kind kind
}{
	{Stream, streamTest{}},
	{RR, transactionTest{}},
	{CRR, connectTest{}},
	{UDP, udpTest{}},
	{Ping, pingTest{}},
	{MTU, mtuTest{}},
	{Load, loadTest{}},
	{Burst, burstTest{}},
}

// traits are the plain facts about a test.
type traits struct {
	takes    option // fields of a Spec that the test uses, of those that not every test uses
	bulk     bool   // payload flows in the Spec's Direction; otherwise the near end asks and the far end answers
	dials    bool   // the near end dials TCP data connections through Link.Dial
	floods   bool   // the test may leave no share of the path to the control channel, see Silence
	composed bool   // the near end runs several other tests instead; no far end runs this one
}

// kindOf returns the kind of a test and whether there is such a test.
func kindOf(t Test) (kind, bool) {
	for _, k := range kinds {
		if k.name == t {
			return k.kind, true
		}
	}
	return nil, false
}

// Heavy reports whether a test loads the hosts and the path: all do but those of single packets. A
// host is in one such test at a time; see package lease.
func (s Spec) Heavy() bool { return s.Test != Ping && s.Test != MTU }

// traits returns the traits of the Spec's test; those of an unknown test are all zero.
func (s Spec) traits() traits {
	if k, ok := kindOf(s.Test); ok {
		return k.traits()
	}
	return traits{}
}

// noSuchTest says that t is no test, and lists the tests.
func noSuchTest(t Test) error {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k.name)
	}
	last := len(names) - 1
	return fmt.Errorf("%w: no test %q: there are %s and %s", ErrBadSpec, t, strings.Join(names[:last], ", "),
		names[last])
}

// cast is what one end of a test has opened: its workers, and what the conductor must know about
// them.
type cast struct {
	workers []*engine.Worker
	// beside is the worker that runs beside the data connections, the last of workers: pings, or a
	// search. It has no CPU of its own, and what it counts is no payload of the test. Nil: no such
	// worker.
	beside *engine.Worker
	ending ending // nil: time alone ends the window

	held      bool         // senders wait for the window to open
	amount    bool         // count what the workers have read, not what the kernel has received
	scheduled bool         // the test sends on a schedule, so the steadiness of its rate proves nothing
	share     bool         // many streams may share a thread
	missing   func() int64 // datagrams not received so far; nil: the test has no datagrams

	begun  func()              // ends what ran only until test.go arrived; nil: nothing did
	report func(*Result) error // near end: adds what the workers found, once they have ended; nil: nothing
}

// ending decides when one end of a test has moved and counted everything that belongs to its
// window. The conductor of that end calls it, so it needs no lock.
type ending interface {
	// over reports, within the window, whether it has done its work before its time is up.
	over(c *conductor, now time.Duration) bool
	// due returns when over must be asked again.
	due() time.Duration
	// drained reports, after the window, whether everything sent in it is counted.
	drained(c *conductor, now time.Duration) bool
	// handle acts on a message of the other end; taken is false if this test has no such message.
	handle(c *conductor, m wire.Message) (taken bool, err error)
	// account adds to the report of this end what only this test counts.
	account(c *conductor, b *resultBody)
}

// never is a time that no test reaches.
const never = time.Duration(1<<63 - 1)

// timed is the ending of a test that runs for its time: what arrives after the window does not
// count.
type timed struct{}

func (timed) over(*conductor, time.Duration) bool                     { return false }
func (timed) due() time.Duration                                      { return never }
func (timed) drained(*conductor, time.Duration) bool                  { return true }
func (timed) handle(*conductor, wire.Message) (taken bool, err error) { return false, nil }
func (timed) account(*conductor, *resultBody)                         {}

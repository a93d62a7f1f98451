package admission

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxSources is how many sources a Gate remembers for what they moved in their window: 4096 of
// about 100 bytes.
const maxSources = 4096

// handful is how many accounts are compared when the gate has to forget one.
const handful = 32

// rateBurst is how much of [Limits.BitsPerSecond] a visit may be ahead; it covers the granularity
// of the callers of [Visit.Pause].
const rateBurst = 100 * time.Millisecond

// idleAfter is how long a stranger's test may move nothing before its place may go to another
// client. It covers every wait of a protocol; the slowest client of any dialect sends once a
// second.
const idleAfter = 5 * time.Second

// A stranger's test that has moved fewer bytes than trickle a second, for trickleAfter, may lose
// its place as well, but only where all are taken and none is idle: a byte now and then would keep
// one for as long as the longest test.
const (
	trickle      = 1000
	trickleAfter = 30 * time.Second
)

// BusyError reports that the gate does not admit a source.
type BusyError struct {
	From       netip.Addr
	Reason     string        // in plain words, without the address
	RetryAfter time.Duration // when another try is worthwhile; 0: when another visit ends
}

// Error is "admit ADDRESS: reason".
func (e *BusyError) Error() string { return fmt.Sprintf("admit %s: %s", e.From, e.Reason) }

// BudgetError reports that a visit has used up what it was granted. It must end.
type BudgetError struct {
	From   netip.Addr
	Reason string // in plain words, without the address
}

// Error is "serve ADDRESS: reason".
func (e *BudgetError) Error() string { return fmt.Sprintf("serve %s: %s", e.From, e.Reason) }

// Gate admits tests and packets. Any goroutine may call its methods; none of them blocks or starts
// one.
type Gate struct {
	limits Limits
	start  time.Time // of the gate's clock, for its monotonic reading only

	mu      sync.Mutex
	clients [classes]int
	idlers  []*Visit // those of strangers, in the order of their arrival
	sources map[source]*account
	packets buckets

	testNow func() time.Duration // tests only; nil: the monotonic clock
}

// class is how well a visitor is known. Each class has all the places of [Limits] to itself, so
// that strangers take none from clients that hold the host's key, even if both come from one
// address.
type class int

const (
	stranger class = iota
	known
	classes
)

// account is what one source has open and has moved.
type account struct {
	visits [classes]int
	moved  int64         // in the running window
	until  time.Duration // end of that window; 0: none is running
}

// New makes a gate with the given limits.
func New(limits Limits) *Gate {
	limits = limits.withDefaults()
	return &Gate{limits: limits, start: time.Now(), sources: make(map[source]*account), packets: newBuckets(limits)}
}

// Limits returns the gate's limits with the defaults filled in; a limit that does not exist is the
// largest value of its type, of rates +Inf. Servers use them to refuse what a client requests in
// advance.
func (g *Gate) Limits() Limits { return g.limits }

// now returns the gate's own time. It starts at one, so that zero can mean never.
func (g *Gate) now() time.Duration {
	if g.testNow != nil {
		return g.testNow()
	}
	return time.Since(g.start) + 1
}

// Visit is one test of one source. Any goroutine may call its methods.
type Visit struct {
	gate     *Gate
	from     netip.Addr
	deadline time.Time

	// The gate's lock protects all of these.
	account *account
	class   class
	key     source
	moved   int64
	began   time.Duration
	paid    time.Duration // the instant up to which BitsPerSecond covers what was moved
	busy    time.Duration // when it last moved something, or began
	left    bool
	lost    bool     // its place went to another client
	onLoss  []func() // end what is left of it
}

// Enter admits one more test of an unknown source, or returns the reason why not as a [*BusyError].
// The caller must [Visit.Leave] the visit. An address that has not proved itself must not enter:
// forged ones would take all the places.
func (g *Gate) Enter(from netip.Addr) (*Visit, error) { return g.enter(from, stranger) }

// EnterKnown is [Gate.Enter] for a source that has shown the host's key. Its tests have the same
// bounds as those of strangers, but are counted apart from them; what it moves counts together with
// what strangers from its address have moved.
func (g *Gate) EnterKnown(from netip.Addr) (*Visit, error) { return g.enter(from, known) }

func (g *Gate) enter(from netip.Addr, as class) (*Visit, error) {
	key := sourceOf(from)
	g.mu.Lock()
	var displaced []func()
	defer func() {
		g.mu.Unlock()
		for _, end := range displaced { // without the lock, because they call code of a server
			end()
		}
	}()
	now := g.now()
	if a := g.sources[key]; as == stranger && g.clients[as] >= g.limits.Clients &&
		(a == nil || a.visits[as] < g.limits.ClientsPerSource) {
		displaced = g.displace(now)
	}
	if n := g.clients[as]; n >= g.limits.Clients {
		return nil, &BusyError{From: from, Reason: fmt.Sprintf("%s being served, the most this host allows",
			are(n, "test is", "tests are"))}
	}
	a := g.accountOf(key, now)
	if n := a.visits[as]; n >= g.limits.ClientsPerSource {
		return nil, &BusyError{From: from,
			Reason: fmt.Sprintf("%s of this source being served, the most this host allows", are(n, "test", "tests"))}
	}
	if a.moved >= g.limits.SourceBytes {
		wait := a.until - now
		return nil, &BusyError{From: from, RetryAfter: wait, Reason: fmt.Sprintf(
			"this source has moved the %s that this host allows per %v; again in %v", bytesText(g.limits.SourceBytes),
			g.limits.SourceWindow, wait.Round(time.Second),
		)}
	}
	g.clients[as]++
	a.visits[as]++
	v := &Visit{gate: g, from: from, deadline: deadline(g.limits.Duration), account: a, class: as, key: key,
		began: now, paid: now, busy: now}
	if as == stranger {
		g.idlers = append(g.idlers, v)
	}
	return v, nil
}

// displace takes the place of the stranger that has been idle for longest, if one has been for
// idleAfter, or else of the one that trickles most slowly, and returns what ends its test.
// Otherwise a few sources that begin tests and let them rest would keep out all others. The caller
// holds the lock.
func (g *Gate) displace(now time.Duration) (end []func()) {
	var victim, slowest *Visit
	least := float64(trickle)
	for _, v := range g.idlers {
		if now-v.busy >= idleAfter && (victim == nil || v.busy < victim.busy) {
			victim = v
		}
		if age := now - v.began; age >= trickleAfter && float64(v.moved)/age.Seconds() < least {
			slowest, least = v, float64(v.moved)/age.Seconds()
		}
	}
	if victim == nil {
		victim = slowest
	}
	if victim == nil {
		return nil
	}
	victim.lost = true
	end, victim.onLoss = victim.onLoss, nil
	victim.leave()
	return end
}

// OnLoss registers a function that ends the test when its place has gone to another client. It runs
// once at most, on another goroutine or, if the place is lost already, at once.
func (v *Visit) OnLoss(end func()) {
	v.gate.mu.Lock()
	lost := v.lost
	if !lost {
		v.onLoss = append(v.onLoss, end)
	}
	v.gate.mu.Unlock()
	if lost {
		end()
	}
}

// deadline returns the time d from now, or the zero time when that is beyond what a time can hold.
func deadline(d time.Duration) time.Time {
	if d == math.MaxInt64 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// are formats a number of things in words.
func are(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// accountOf finds or makes the account of a source. The caller holds the lock.
func (g *Gate) accountOf(key source, now time.Duration) *account {
	if a, ok := g.sources[key]; ok {
		a.roll(now)
		return a
	}
	a := &account{}
	if len(g.sources) >= maxSources {
		*a = g.forget(now)
	}
	g.sources[key] = a
	return a
}

// roll ends a window whose time is over.
func (a *account) roll(now time.Duration) {
	if a.until != 0 && now >= a.until {
		a.moved, a.until = 0, 0
	}
}

// forget makes space for one account and returns what the newcomer inherits: nothing if a window
// was over, else what the poorest of a handful had moved. Go iterates over a map from a random
// place on, so the handful is a sample, and a newcomer costs the same with any number of accounts.
// Sources with a visit are never forgotten; there are at most twice Limits.Clients of them.
func (g *Gate) forget(now time.Duration) account {
	var victim source
	var poorest *account
	looked := 0
	for key, a := range g.sources {
		a.roll(now)
		switch {
		case a.visits != [classes]int{}:
			continue
		case a.moved == 0:
			delete(g.sources, key)
			return account{}
		case poorest == nil || a.moved < poorest.moved:
			victim, poorest = key, a
		}
		if looked++; looked == handful {
			break
		}
	}
	if poorest == nil {
		return account{}
	}
	delete(g.sources, victim)
	return account{moved: poorest.moved, until: poorest.until}
}

// Deadline returns when the visit must be over; the zero time when it has no end.
func (v *Visit) Deadline() time.Time { return v.deadline }

// Spend counts n bytes that were moved, in either direction. It returns a [*BudgetError] once the
// visit has had its bytes or its time, or its source the bytes of its window; the n bytes count all
// the same, because they have been moved.
func (v *Visit) Spend(n int64) error {
	g := v.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	a := v.account
	a.roll(now)
	if n > 0 {
		if a.until == 0 {
			a.until = now + g.limits.SourceWindow
		}
		v.moved, a.moved, v.busy = add(v.moved, n), add(a.moved, n), now
		if perByte := 8e9 / g.limits.BitsPerSecond; perByte > 0 {
			v.paid = now + nanos(float64(max(v.paid-now, -rateBurst))+float64(n)*perByte)
		}
	}
	refuse := func(format string, args ...any) error {
		return &BudgetError{From: v.from, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case v.lost:
		return refuse("its place went to another client, because it moved next to nothing")
	case v.moved > g.limits.Bytes:
		return refuse("the %s that this host allows per test are used up", bytesText(g.limits.Bytes))
	case a.moved > g.limits.SourceBytes:
		return refuse("the %s that this host allows a source per %v are used up", bytesText(g.limits.SourceBytes),
			g.limits.SourceWindow)
	case now-v.began >= g.limits.Duration:
		return refuse("the %v that this host allows per test are over", g.limits.Duration)
	}
	return nil
}

// add sums byte counts without overflow.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// nanos converts a float of nanoseconds into a duration of at most a century, so that sums with the
// clock cannot overflow.
func nanos(v float64) time.Duration {
	const century = 100 * 365 * 24 * time.Hour
	if v >= float64(century) {
		return century
	}
	return time.Duration(v)
}

// Left returns how many bytes the visit may still move, by its own limit and its source's; 0: none.
func (v *Visit) Left() int64 {
	g := v.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	v.account.roll(g.now())
	return max(0, min(g.limits.Bytes-v.moved, g.limits.SourceBytes-v.account.moved))
}

// Pause returns how long a sender must rest before it moves more, so that the visit keeps to
// [Limits.BitsPerSecond]; 0: not at all.
func (v *Visit) Pause() time.Duration {
	g := v.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, v.paid-g.now())
}

// Leave ends the visit and gives its place to the next. Further calls do nothing.
func (v *Visit) Leave() {
	v.gate.mu.Lock()
	defer v.gate.mu.Unlock()
	v.leave()
}

// leave is Leave for a caller that holds the lock.
func (v *Visit) leave() {
	g := v.gate
	if v.left {
		return
	}
	v.left = true
	g.idlers = slices.DeleteFunc(g.idlers, func(o *Visit) bool { return o == v })
	g.clients[v.class]--
	v.account.visits[v.class]--
	v.account.roll(g.now())
	// The gate need not remember a source that has moved nothing.
	if v.account.visits == [classes]int{} && v.account.moved == 0 {
		delete(g.sources, v.key)
	}
}

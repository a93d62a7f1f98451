package host

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// EventKind is what the kernel said about an interface.
type EventKind string

// The kinds of events.
const (
	QueueTimeout EventKind = "queue-timeout" // NETDEV WATCHDOG: a transmit queue stood still for seconds
	HardwareHang EventKind = "hardware-hang" // the driver found its NIC hung, or reset it
	NAPIBudget   EventKind = "napi-budget"   // a driver's poll did more than its budget allows
	LinkDown     EventKind = "link-down"
	LinkUp       EventKind = "link-up"
)

// KernelEvent is what the kernel said about one interface of this host, from its log.
type KernelEvent struct {
	Interface string    `json:"interface"`
	Kind      EventKind `json:"kind"`
	Total     int       `json:"total"`
	// how long before the snapshot the first and the last of them were
	FirstSeconds float64 `json:"first_age_seconds"`
	LastSeconds  float64 `json:"last_age_seconds"`
	Text         string  `json:"text"` // of the last one, printable ASCII
}

const (
	// mostRecords bounds the reading: a log of the largest common size, a megabyte, has fewer.
	mostRecords = 20_000
	// mostText is the longest text of an event in bytes.
	mostText = 160
	// booting is how long after the start links come and go without a reason to worry.
	booting = 2 * time.Minute
)

// spoken are the sentences of the kernel that count, with the interface as first group. They are
// anchored, because other messages quote names that any user may choose.
var spoken = []struct {
	kind EventKind
	form *pattern.Pattern
}{
	// dev_watchdog in net/sched/sch_generic.c, before and since Linux 6.10.
	{QueueTimeout, pattern.New(`^NETDEV WATCHDOG: (\S{1,15}) \([^)]*\): transmit queue \d+ timed out`)},
	{QueueTimeout, pattern.New(prefix + `NETDEV WATCHDOG: (?:CPU: \d+: )?transmit queue \d+ timed out`)},
	// e1000, e1000e, igb, igc, ixgbe, i40e, ice.
	{HardwareHang, pattern.New(prefix + `(?:Detected (?:Tx|Hardware) Unit Hang|[Tt]x hang \d+ detected|` +
		`Reset adapter|initiating reset due to tx timeout|tx_timeout(?: recovery)?|transmit timed out)`)},
	// __napi_poll in net/core/dev.c.
	{NAPIBudget, pattern.New(prefix + `NAPI poll function \S+ returned \d+, exceeding its budget of \d+`)},
	// phylib and most drivers.
	{LinkDown, pattern.New(prefix + `(?:NIC )?(?:[A-Z][a-z]+ )?[Ll]ink (?:is )?[Dd]own`)},
	{LinkUp, pattern.New(prefix + `(?:NIC )?(?:[A-Z][a-z]+ )?[Ll]ink (?:is )?[Uu]p`)},
}

// prefix is that of netdev_printk: driver and bus address, then the interface.
const prefix = `^(?:[\w.-]+ [\w.:-]+ )?(\S{1,15}?)(?: \([^)]*\))?: `

// readKernelLog returns what the kernel said about the NICs of this host. The log is the machine's:
// in a container its names may mean other interfaces, so software, whose names repeat in each
// network namespace, is left out. The refusal to an ordinary user is expected, so it gives no
// warning.
func readKernelLog(src *source, interfaces []Interface) []KernelEvent {
	if !src.Live() {
		return nil
	}
	var cards []string
	for _, x := range interfaces {
		if !x.Virtual {
			cards = append(cards, x.Name)
		}
	}
	if len(cards) == 0 {
		return nil
	}
	// The clock of the log (printk) is that of the scheduler, which stops while the machine sleeps as
	// this one does.
	l := kernelLog{cards: cards, now: sys.Monotonic()}
	if err := sys.KernelLog(mostRecords, l.read); err != nil {
		return nil
	}
	return l.events
}

// kernelLog gathers events from records.
type kernelLog struct {
	cards  []string      // their names
	now    time.Duration // since the start of the machine
	events []KernelEvent
}

// read takes one record: "priority,number,microseconds,flags;text", then lines that do not count.
func (l *kernelLog) read(record []byte) {
	head, text, ok := strings.Cut(string(record), ";")
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, `\x0a`) // the kernel's writing of a line's end within a message
	fields := strings.Split(head, ",")
	if !ok || len(fields) < 3 {
		return
	}
	// The facility is above the three bits of the level. That of the kernel is 0; what programs write
	// into the log has another one and is not evidence.
	priority, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil || priority>>3 != 0 {
		return
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || micros < 0 {
		return
	}
	at := time.Duration(micros) * time.Microsecond
	for _, s := range spoken {
		found := s.form.FindStringSubmatch(text)
		if found == nil || !slices.Contains(l.cards, found[1]) {
			continue
		}
		if link := s.kind == LinkDown || s.kind == LinkUp; !link || at >= booting {
			l.add(s.kind, found[1], text, max(l.now-at, 0))
		}
		return
	}
}

func (l *kernelLog) add(kind EventKind, name, text string, age time.Duration) {
	i := slices.IndexFunc(l.events, func(e KernelEvent) bool { return e.Interface == name && e.Kind == kind })
	if i < 0 {
		i = len(l.events)
		l.events = append(l.events, KernelEvent{Interface: name, Kind: kind, FirstSeconds: age.Seconds()})
	}
	e := &l.events[i]
	e.Total, e.LastSeconds, e.Text = e.Total+1, age.Seconds(), printable(text)
}

// printable returns a text without anything that a terminal would obey: the kernel escapes some of
// it, and versions differ.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), mostText)]
}

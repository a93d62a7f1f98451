package drops

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/host/nicstat"
)

// trouble is one kind of loss of one interface. Cards tell it at several places, standard and their
// own, of which the largest is believed.
type trouble struct {
	card     string
	outbound bool
	class    nicstat.Class
}

// tale is what one counter, or those of all queues together, says of a trouble.
type tale struct {
	place string
	total uint64
	own   bool // of the driver's own words, and not of the kernel's standard ones
}

// cards tells what died in cards and their drivers. rx_dropped and tx_dropped come last: drivers
// and kernel put into them what other counters tell exactly.
func (l *ledger) cards() {
	tales := l.tales()
	own := make(map[string]map[bool]uint64) // by interface and direction, what its driver alone tells
	for _, t := range slices.SortedFunc(maps.Keys(tales), func(a, b trouble) int {
		return cmp.Or(cmp.Compare(a.card, b.card), cmp.Compare(a.class, b.class))
	}) {
		worst := tales[t][0]
		for _, other := range tales[t][1:] {
			// Of two that say the same the standard one is told.
			if other.total > worst.total || other.total == worst.total && !other.own {
				worst = other
			}
		}
		stage := Card
		if t.class == nicstat.RingFull {
			stage = Ring
		}
		l.put(stage, worst.place, worst.total, 0)
		if worst.own {
			if own[t.card] == nil {
				own[t.card] = make(map[bool]uint64)
			}
			own[t.card][t.outbound] += worst.total
		}
	}
	l.dropped(own)
}

// dropped tells rx_dropped and tx_dropped of all interfaces, less what is told elsewhere: what the
// driver tells in its own words, what the backlog refused, which counts for the device it came by
// (enqueue_to_backlog), and for the other end of a veth, which is told that its packet was not
// taken (veth_xmit).
func (l *ledger) dropped(own map[string]map[bool]uint64) {
	type side struct {
		name     string
		total    uint64
		outbound bool
	}
	var sides []side
	for name, n := range l.counters {
		card, column, ok := standard(name)
		// A bond adds up what its members tell.
		if !ok || l.drivers[card] == "bonding" || column != "rx_dropped" && column != "tx_dropped" {
			continue
		}
		outbound := column == "tx_dropped"
		sides = append(sides, side{name, n - min(n, own[card][outbound]), outbound})
	}
	slices.SortFunc(sides,
		func(a, b side) int { return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name)) })
	backlog := map[bool]uint64{false: l.counters["softnet.dropped"], true: l.counters["softnet.dropped"]}
	for _, s := range sides {
		told := uint64(0)
		card, _, _ := standard(s.name)
		if !s.outbound || l.drivers[card] == "veth" {
			told = min(s.total, backlog[s.outbound])
			backlog[s.outbound] -= told
		}
		l.put(Card, s.name, s.total, told)
	}
}

// tales gathers what the counters of all interfaces say of packets that died, but for rx_dropped
// and tx_dropped.
func (l *ledger) tales() map[trouble][]tale {
	tales := make(map[trouble][]tale)
	type pattern struct {
		trouble
		name string
	}
	queues := make(map[pattern]int) // where the tale of all queues together is
	for _, name := range slices.Sorted(maps.Keys(l.counters)) {
		n := l.counters[name]
		card, counter, isStandard := standard(name)
		if !isStandard {
			card, counter = l.own(name)
		}
		driver := l.drivers[card]
		if n == 0 || counter == "" || driver == "bonding" || isStandard &&
			(counter == "rx_dropped" || counter == "tx_dropped") {
			continue
		}
		e, ok := nicstat.Lookup(driver, counter)
		if !ok || !e.Drop {
			continue
		}
		t := trouble{card, outboundName.MatchString(counter), e.Class}
		if !isStandard {
			queue := pattern{t, "ethtool." + card + "." + number.ReplaceAllString(counter, "#")}
			if i, ok := queues[queue]; ok {
				tales[t][i].place = queue.name
				tales[t][i].total += n
				continue
			}
			queues[queue] = len(tales[t])
		}
		tales[t] = append(tales[t], tale{name, n, !isStandard})
	}
	return tales
}

var (
	number       = regexp.MustCompile(`\d+`)
	outboundName = regexp.MustCompile(`(^|[^a-z])tx([^a-z]|$)`)
)

// standard takes nic.eth0.100.rx_dropped apart. The columns have no dots, and the interface may.
func standard(name string) (card, column string, ok bool) {
	rest, ok := strings.CutPrefix(name, "nic.")
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// own takes ethtool.eth0.port.rx_dropped apart. Both parts may have dots, so that the interface is
// the longest known one.
func (l *ledger) own(name string) (card, counter string) {
	rest, ok := strings.CutPrefix(name, "ethtool.")
	if !ok {
		return "", ""
	}
	for known := range l.drivers {
		if c, ok := strings.CutPrefix(rest, known+"."); ok && len(known) > len(card) {
			card, counter = known, c
		}
	}
	return card, counter
}

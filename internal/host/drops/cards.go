package drops

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/nicstat"
)

// loss is one kind of loss of one interface. NICs count it in several counters, standard ones
// and their own; the largest one is used.
type loss struct {
	card     string
	outbound bool
	class    nicstat.Class
}

// report is what one counter, or the sum over all queues, says about a loss.
type report struct {
	place string
	total uint64
	own   bool // from the driver's own counters, not from the kernel's standard ones
}

// cards lists what NICs and their drivers dropped. rx_dropped and tx_dropped come last: drivers and
// the kernel add to them what other counters report exactly.
func (l *ledger) cards() {
	reports := l.reports()
	own := make(map[string]map[bool]uint64) // by interface and direction: what only the driver counts
	kinds := slices.Collect(maps.Keys(reports))
	sorting.Func(kinds, func(a, b loss) int {
		return cmp.Or(cmp.Compare(a.card, b.card), cmp.Compare(a.class, b.class))
	})
	for _, t := range kinds {
		worst := reports[t][0]
		for _, other := range reports[t][1:] {
			// Of two equal counters the standard one is reported.
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

// dropped lists rx_dropped and tx_dropped of all interfaces, less what other counters report: the
// driver's own counters, the packets that the backlog refused, which count for the receiving device
// (enqueue_to_backlog), and those of the other end of a veth, which counts a packet that its peer
// did not take (veth_xmit).
func (l *ledger) dropped(own map[string]map[bool]uint64) {
	type side struct {
		name     string
		total    uint64
		outbound bool
	}
	var sides []side
	for name, n := range l.counters {
		card, column, ok := standard(name)
		// A bond sums the counters of its members.
		if !ok || l.drivers[card] == "bonding" || column != "rx_dropped" && column != "tx_dropped" {
			continue
		}
		outbound := column == "tx_dropped"
		sides = append(sides, side{name, n - min(n, own[card][outbound]), outbound})
	}
	sorting.Func(sides,
		func(a, b side) int { return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name)) })
	backlog := map[bool]uint64{false: l.counters["softnet.dropped"], true: l.counters["softnet.dropped"]}
	for _, s := range sides {
		counted := uint64(0)
		card, _, _ := standard(s.name)
		if !s.outbound || l.drivers[card] == "veth" {
			counted = min(s.total, backlog[s.outbound])
			backlog[s.outbound] -= counted
		}
		l.put(Card, s.name, s.total, counted)
	}
}

// reports gathers what the counters of all interfaces report of dropped packets, except rx_dropped
// and tx_dropped.
func (l *ledger) reports() map[loss][]report {
	reports := make(map[loss][]report)
	type pattern struct {
		loss
		name string
	}
	queues := make(map[pattern]int) // index of the sum over all queues
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
		t := loss{card, nicstat.Outbound(counter), e.Class}
		if !isStandard {
			queue := pattern{t, "ethtool." + card + "." + number.ReplaceAllString(counter, "#")}
			if i, ok := queues[queue]; ok {
				reports[t][i].place = queue.name
				reports[t][i].total += n
				continue
			}
			queues[queue] = len(reports[t])
		}
		reports[t] = append(reports[t], report{name, n, !isStandard})
	}
	return reports
}

var number = pattern.New(`\d+`)

// standard splits nic.eth0.100.rx_dropped. The columns have no dots; the interface may have some.
func standard(name string) (card, column string, ok bool) {
	rest, ok := strings.CutPrefix(name, "nic.")
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// own splits ethtool.eth0.port.rx_dropped. Both parts may have dots, so the interface is the
// longest known one.
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

package sample

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/nicstat"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Bounds on what is read from drivers.
const (
	maxQueues         = 256 // of one interface, both directions together
	maxSoftwareQueued = 8   // interfaces without hardware whose queues are read
)

// queues follows the driver's own counters (ethtool -S): its queues, and its losses.
type queues struct {
	reader ethtool.StatisticsReader
	pace   pace
	read   time.Duration // since boot
	names  time.Duration // when the names were read, since boot
	none   bool          // the driver has no such counters

	queues []string // rx-0, rx-1, …
	parts  []part
	own    []ownDrop
	tally  *tally
	now    []uint64
	series [3][]*Series // packets, bytes, drops by queue; nil: the driver does not count it
	has    [3][]bool
	owned  owned
	quiet  int
}

// part assigns a counter of the driver to a figure.
type part struct{ counter, figure int }

// ownDrop is a figure of lost packets.
type ownDrop struct {
	class    nicstat.Class
	outbound bool
}

// The drivers' names for the figures of a queue. Those of the second list replace missing ones of
// the first: veth counts only what it handles by NAPI.
var queueFigures = [2][2][]string{
	{nicstat.PacketNames(), {"xdp_packets"}},
	{{"bytes", "ucast_bytes", "mcast_bytes", "bcast_bytes"}, {"xdp_bytes"}},
}

// dropNames are names of a loss that need no dictionary.
var dropNames = []string{"drops", "dropped", "drop"}

var digits = pattern.New(`\d+`)

// plan selects the driver's counters to keep.
func (q *queues) plan(driver, link string, names []string, hardware bool) {
	q.owned, q.queues, q.parts, q.own = nil, nil, nil, nil
	type found struct {
		queue, counter string
		at             int
		drop           bool
	}
	var all []found
	position := make(map[string]int)
	patterns := make(map[string]int)
	var patternOf []string
	var patternParts []part
	for at, name := range names {
		e, known := nicstat.Lookup(driver, name)
		drop := known && e.Drop
		if queue, counter, ok := nicstat.Queue(name); ok {
			all = append(all, found{queue, counter, at, drop || !known && slices.Contains(dropNames, counter)})
			position[queue] = 0
		}
		if !drop || !hardware || slices.Contains(standardNames, name) {
			continue
		}
		// The counters of all queues make one figure, and so does that of the whole card beside
		// them: the larger one counts.
		pattern := digits.ReplaceAllString(name, "#")
		figure, ok := patterns[pattern]
		if !ok {
			figure = len(patternOf)
			patterns[pattern] = figure
			patternOf = append(patternOf, pattern)
			q.own = append(q.own, ownDrop{e.Class, nicstat.Outbound(name)})
		}
		patternParts = append(patternParts, part{at, figure})
	}
	for queue := range position {
		q.queues = append(q.queues, queue)
	}
	sorting.Func(q.queues, func(a, b string) int {
		return cmp.Or(cmp.Compare(a[:2], b[:2]), cmp.Compare(queueNumber(a), queueNumber(b)))
	})
	if q.queues = q.queues[:min(len(q.queues), maxQueues)]; !hardware && len(q.queues) < 2 {
		q.queues = nil
	}
	clear(position)
	for i, queue := range q.queues {
		position[queue] = i
	}
	n := len(q.queues)
	for kind := range q.has {
		q.has[kind] = make([]bool, n)
		q.series[kind] = make([]*Series, n)
	}
	for kind, lists := range queueFigures {
		for i, list := range lists {
			var filled []int
			for _, f := range all {
				at, ok := position[f.queue]
				if ok && slices.Contains(list, f.counter) && (i == 0 || !q.has[kind][at]) {
					q.parts = append(q.parts, part{f.at, kind*n + at})
					filled = append(filled, at)
				}
			}
			for _, at := range filled {
				q.has[kind][at] = true
			}
		}
	}
	for _, f := range all {
		if at, ok := position[f.queue]; ok && f.drop {
			q.parts = append(q.parts, part{f.at, 2*n + at})
			q.has[2][at] = true
		}
	}
	for _, p := range patternParts {
		q.parts = append(q.parts, part{p.counter, 3*n + p.figure})
	}
	for kind, m := range []*Metric{queuePackets, queueBytes, queueDrops} {
		for i, queue := range q.queues {
			if q.has[kind][i] {
				q.series[kind][i] = q.owned.add(m, link, queue)
			}
		}
	}
	q.none = len(q.parts) == 0
	q.now = make([]uint64, 3*n+len(q.own))
	q.tally = newTally(len(q.now), n, bitsUnknown)
}

// most applies the card's limit to each queue: a read that reached another card, while two were
// changing names, must not cause a spike.
func (q *queues) most(k *link, now time.Duration) func(i int) uint64 {
	of := k.most(now - q.read)
	if of == nil {
		return nil
	}
	return func(i int) uint64 {
		if n := len(q.queues); i >= n && i < 2*n {
			return of(int(nl.RxBytes))
		}
		return of(int(nl.RxPackets))
	}
}

// standardNames are the kernel's own counters, which some drivers repeat among theirs.
var standardNames = []string{
	"rx_missed_errors", "rx_fifo_errors", "rx_over_errors", "rx_dropped", "tx_dropped", "tx_fifo_errors",
	"rx_nohandler", "tx_carrier_errors", "tx_aborted_errors",
}

func queueNumber(queue string) int {
	n, _ := strconv.Atoi(queue[3:])
	return n
}

// readQueues reads the driver's counters of an interface, if it is time.
func (s *Sampler) readQueues(r *Reading, k *link, n *nl.LinkCounters) {
	q := &k.queues
	if q.none && (r.SinceBoot-q.names < slowEvery || !k.hardware) || !q.pace.due(r.SinceBoot) {
		return
	}
	switch {
	case k.hardware:
		// A card without a link counts nothing, and may sleep.
		if !k.up || s.asleep(n) {
			return
		}
	case n.Kind != "veth":
		return
	case q.queues == nil && s.links.softwareQueued >= maxSoftwareQueued:
		return
	}
	if q.tally == nil && !k.hardware {
		// Names take memory, and hosts of containers have hundreds of interfaces with one queue.
		if c, err := ethtool.New(s.client).Channels(n.Name); err != nil || c.Rx+c.Combined < 2 {
			q.none = true
			return
		}
	}
	again := q.tally == nil || r.SinceBoot-q.names >= slowEvery
	if again {
		q.names = r.SinceBoot
	}
	began := sys.Boottime()
	names, values, changed, err := q.reader.Read(ethtool.New(s.client), n.Name, again)
	if err != nil {
		q.none = true
		q.tally = nil
		q.owned.end(r)
		q.queues = nil
		if !errors.Is(err, nl.ErrNotSupported) && !errors.Is(err, fs.ErrNotExist) {
			r.warn("queues of "+n.Name, err)
		}
		return
	}
	if changed || q.tally == nil {
		had := q.owned != nil
		q.owned.end(r)
		q.plan(k.driver, k.name, names, k.hardware)
		if had {
			q.quiet = s.count
		}
	}
	if q.none {
		return
	}
	clear(q.now)
	for _, p := range q.parts {
		q.now[p.figure] += values[p.counter]
	}
	q.tally.add(q.now, q.most(k, r.SinceBoot))
	q.read = r.SinceBoot
	q.pace.done(r.SinceBoot, sys.Boottime()-began, max(1, s.links.queued))
	s.links.queuedNow++
	if !k.hardware {
		s.links.softwareQueuedNow++
	}
	if q.quiet == s.count || k.quiet == s.count {
		return
	}
	for kind, series := range q.series {
		for i, x := range series {
			if x != nil {
				r.put(x, float64(q.tally.sum[kind*len(q.queues)+i]))
			}
		}
	}
}

// lost returns the packets that the driver counts as lost for lack of descriptors, and for other
// reasons; of counters that may count the same packets the largest.
func (q *queues) lost() (ring, received, sent uint64) {
	if q.tally == nil {
		return 0, 0, 0
	}
	worst := make(map[ownDrop]uint64, 4)
	for i, d := range q.own {
		worst[d] = max(worst[d], q.tally.sum[3*len(q.queues)+i])
	}
	for d, n := range worst {
		switch {
		case d.outbound:
			sent += n
		case d.class == nicstat.RingFull:
			ring += n
		default:
			received += n
		}
	}
	return ring, received, sent
}

// rename ends the series, so that new ones begin under another name.
func (q *queues) rename(r *Reading) {
	q.owned.end(r)
	q.tally = nil
	q.none = false
	q.pace = pace{}
}

// interruptKey returns a sort key for the interrupts of a queue: direction and number.
func interruptKey(queue string) (string, int) {
	direction, number, both := strings.Cut(queue, "-")
	if !both {
		direction, number = "", queue
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return "~", 0
	}
	return direction, n
}

package sample

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// slowEvery is the interval for facts that hardly ever change and cost a question to each driver:
// speed, driver, interrupts.
const slowEvery = 30 * time.Second

// links follows the interfaces of the namespace.
type links struct {
	now    []nl.LinkCounters
	qdiscs []nl.QdiscCounters

	byIndex map[int]*link
	names   map[int]string
	begun   bool
	seen    int // readings
	changed int // how often an interface came, went or was renamed

	// interfaces whose drivers were asked at the previous reading, and at this one
	queued, queuedNow                 int
	softwareQueued, softwareQueuedNow int // the software interfaces among them
}

// identity distinguishes an interface from a later one with its name or its number.
type identity struct {
	index int
	mac   string // of the hardware
	kind  string
}

// link is one interface, from the reading in which it appeared until it is gone.
type link struct {
	identity
	name       string
	hardware   bool // a device with a driver, not software alone
	driver     string
	parent     string
	up         bool
	speed      float64 // bits per second, of the last link; 0: not known
	asked      time.Duration
	seen       int
	power      []string // files that say whether the device sleeps
	powerKnown bool
	// the reading in which another interface of this name ended: a point in it would give two
	// series one name
	quiet int

	flaps   uint32 // changes of the carrier, at the reading before
	counts  *tally
	carrier *tally
	qdisc   *tally
	root    qdiscIdentity
	backlog uint64
	queued  int // the last reading in which it had disciplines

	owned   owned
	plain   [5]*Series
	drops   [6]*Series
	errors  [9]*Series
	state   [2]*Series // up, mtu
	changes *Series
	rate    *Series // speed
	info    *Series
	queues  queues
	waiting [4]*Series
	dropped *Series   // place qdisc
	counted [6]uint64 // drops, which must not decrease
	worst   [2]uint64 // other errors, likewise
}

// qdiscIdentity identifies the root discipline of an interface.
type qdiscIdentity struct {
	kind   string
	handle uint32
}

// The places and kinds of the labels, in the order of link.drops and link.errors. Software has only
// the first of each: it has no ring and no wire.
var (
	dropPlaces = [...]struct{ direction, place string }{
		{"receive", "kernel"}, {"transmit", "kernel"}, {"receive", "ring"}, {"receive", "unwanted"},
		{"receive", "card"}, {"transmit", "card"},
	}
	errorKinds = [...]struct {
		direction, kind string
		of              nl.LinkCount
	}{
		{"receive", "other", nl.RxErrors}, {"transmit", "other", nl.TxErrors},
		{"receive", "crc", nl.RxCRCErrors}, {"receive", "length", nl.RxLengthErrors},
		{"receive", "frame", nl.RxFrameErrors},
		{"transmit", "carrier", nl.TxCarrierErrors}, {"transmit", "aborted", nl.TxAbortedErrors},
		{"transmit", "window", nl.TxWindowErrors},
		{"transmit", "heartbeat", nl.TxHeartbeatErrors},
	}
)

const softwareDrops, softwareErrors = 2, 2

// readLinks reads all interfaces.
func (s *Sampler) readLinks(r *Reading, elapsed time.Duration) {
	l := &s.links
	now, err := s.client.LinkCounters(l.now)
	if err != nil {
		l.now = l.now[:0]
		r.warn("interfaces", err)
		return
	}
	if l.byIndex == nil {
		l.byIndex, l.names = make(map[int]*link), make(map[int]string)
	}
	clear(l.names)
	for i := range now {
		l.names[now[i].Index] = now[i].Name
	}
	now = s.bound(r, now)
	l.now = now
	free := s.leave(r)
	for i := range now {
		s.arrive(r, &now[i], free)
	}
	if l.qdiscs, err = s.client.QdiscCounters(l.qdiscs); err != nil {
		l.qdiscs = l.qdiscs[:0]
		r.warn("queueing disciplines", err)
	}
	s.countQdiscs()
	for i := range now {
		k := l.byIndex[now[i].Index]
		s.followLink(r, k, &now[i], elapsed)
	}
	l.queued, l.softwareQueued, l.queuedNow, l.softwareQueuedNow = l.queuedNow, l.softwareQueuedNow, 0, 0
	l.begun = true
}

// bound limits the number of interfaces to that of the options: it keeps hardware before software,
// and older before younger ones.
func (s *Sampler) bound(r *Reading, now []nl.LinkCounters) []nl.LinkCounters {
	if len(now) <= s.maxInterfaces {
		return now
	}
	room := s.maxInterfaces
	for i := range now {
		if isHardware(&now[i]) {
			room--
		}
	}
	kept := now[:0]
	for _, n := range now {
		if !isHardware(&n) {
			room--
			if room < 0 {
				continue
			}
		}
		kept = append(kept, n)
	}
	r.Warnings = append(r.Warnings,
		fmt.Sprintf("%d interfaces exist, of which %d are sampled: the NICs, and the oldest of the rest",
			len(now), len(kept)))
	return kept
}

func isHardware(n *nl.LinkCounters) bool { return n.Kind == "" && !n.Loopback }

// leave ends the interfaces that are gone or renamed, and returns the names that they had.
func (s *Sampler) leave(r *Reading) (free map[string]bool) {
	l := &s.links
	l.seen++
	for i := range l.now {
		n := &l.now[i]
		if k := l.byIndex[n.Index]; k != nil && k.identity == identityOf(n) {
			k.seen = l.seen
			if k.name == n.Name {
				continue
			}
			r.happened(LinkRenamed, n.Name, fmt.Sprintf("%s is now named %s", k.name, n.Name))
			free = freed(free, k.name)
			k.owned.end(r)
			k.queues.rename(r)
			k.name = n.Name
			l.changed++
		}
	}
	var gone []*link
	for index, k := range l.byIndex {
		if k.seen != l.seen {
			gone = append(gone, k)
			delete(l.byIndex, index)
		}
	}
	sorting.Func(gone, func(a, b *link) int { return cmp.Compare(a.index, b.index) })
	for _, k := range gone {
		r.happened(LinkGone, k.name, k.name+" is gone")
		free = freed(free, k.name)
		k.owned.end(r)
		k.queues.owned.end(r)
		l.changed++
	}
	return free
}

func freed(free map[string]bool, name string) map[string]bool {
	if free == nil {
		free = make(map[string]bool)
	}
	free[name] = true
	return free
}

// arrive adds an interface that is new, or has a new name.
func (s *Sampler) arrive(r *Reading, n *nl.LinkCounters, free map[string]bool) {
	l := &s.links
	k := l.byIndex[n.Index]
	if k == nil {
		k = &link{identity: identityOf(n), name: n.Name, hardware: isHardware(n), seen: l.seen}
		k.counts, k.carrier, k.qdisc = newTally(int(nl.LinkCounts), 4, bitsUnknown), newTally(1, 0, bits32),
			newTally(3, 0, bits32)
		k.up, k.flaps = n.Up && n.Carrier, n.CarrierChanges
		l.byIndex[n.Index] = k
		l.changed++
		if l.begun {
			r.happened(LinkCame, n.Name, n.Name+" is new")
		}
	}
	if k.owned != nil {
		return
	}
	k.makeSeries()
	k.asked = 0
	// Counters under a name begin at zero, even if the name had counters before.
	k.counts.forget()
	k.carrier.forget()
	k.qdisc.forget()
	k.worst, k.counted = [2]uint64{}, [6]uint64{}
	if free[n.Name] {
		k.quiet = s.count
	}
}

func identityOf(n *nl.LinkCounters) identity {
	return identity{n.Index, n.PermanentMAC, n.Kind}
}

func (k *link) makeSeries() {
	for i, m := range []*Metric{receivePackets, transmitPackets, receiveBytes, transmitBytes, receiveMulticast} {
		k.plain[i] = k.owned.add(m, k.name)
	}
	drops, errors := softwareDrops, softwareErrors
	if k.hardware {
		drops, errors = len(dropPlaces), len(errorKinds)
	}
	for i, d := range dropPlaces[:drops] {
		k.drops[i] = k.owned.add(interfaceDrops, k.name, d.direction, d.place)
	}
	for i, e := range errorKinds[:errors] {
		k.errors[i] = k.owned.add(interfaceErrors, k.name, e.direction, e.kind)
	}
	k.state = [2]*Series{k.owned.add(interfaceUp, k.name), k.owned.add(interfaceMTU, k.name)}
	k.changes = k.owned.add(carrierChanges, k.name)
	k.rate, k.info, k.dropped = nil, nil, nil
	k.waiting = [4]*Series{}
}

// followLink adds the points of an interface's counters and state.
func (s *Sampler) followLink(r *Reading, k *link, n *nl.LinkCounters, elapsed time.Duration) {
	k.counts.add(n.Counts[:], k.most(elapsed))
	k.carrier.add([]uint64{uint64(n.CarrierChanges)}, nil)
	flaps := n.CarrierChanges - k.flaps
	k.flaps = n.CarrierChanges
	wasUp := k.up
	k.watchCarrier(r, n, flaps)
	s.askSlowly(r, k, n, flaps > 0 || k.up != wasUp)
	s.readQueues(r, k, n)
	if k.quiet == s.count {
		return
	}
	sum := k.counts.sum
	for i, c := range [...]nl.LinkCount{nl.RxPackets, nl.TxPackets, nl.RxBytes, nl.TxBytes, nl.RxMulticast} {
		r.put(k.plain[i], float64(sum[c]))
	}
	ring := max(sum[nl.RxMissedErrors], sum[nl.RxFIFOErrors], sum[nl.RxOverErrors])
	// In many drivers the common figures include what the driver's own counters report, so it is
	// counted once.
	ownRing, received, sent := k.queues.lost()
	for i, n := range [...]uint64{
		less(sum[nl.RxDropped], ownRing+received), less(sum[nl.TxDropped], sent), max(ring, ownRing),
		sum[nl.RxNoHandler], received, max(sent, sum[nl.TxFIFOErrors]),
	} {
		if k.drops[i] != nil {
			k.counted[i] = max(k.counted[i], n)
			r.put(k.drops[i], float64(k.counted[i]))
		}
	}
	// A difference of sums may decrease where a driver counts the parts before the whole; the
	// series must not.
	k.worst[0] = max(k.worst[0],
		less(sum[nl.RxErrors], sum[nl.RxCRCErrors]+sum[nl.RxLengthErrors]+sum[nl.RxFrameErrors]+ring))
	k.worst[1] = max(k.worst[1], less(sum[nl.TxErrors],
		sum[nl.TxCarrierErrors]+sum[nl.TxAbortedErrors]+sum[nl.TxWindowErrors]+sum[nl.TxHeartbeatErrors]+
			sum[nl.TxFIFOErrors]))
	for i, e := range errorKinds {
		switch {
		case k.errors[i] == nil:
		case i < 2:
			r.put(k.errors[i], float64(k.worst[i]))
		default:
			r.put(k.errors[i], float64(sum[e.of]))
		}
	}
	up := 0.0
	if k.up {
		up = 1
	}
	r.put(k.state[0], up)
	r.put(k.state[1], float64(n.MTU))
	r.put(k.changes, float64(k.carrier.sum[0]))
	if k.up && k.speed > 0 {
		if k.rate == nil {
			k.rate = k.owned.add(interfaceSpeed, k.name)
		}
		r.put(k.rate, k.speed)
	} else {
		k.rate = k.owned.drop(r, k.rate)
	}
	if k.info != nil {
		r.put(k.info, 1)
	}
	k.addQdiscs(r, s.links.seen)
}

// less returns a - b, or 0 if that is negative.
func less(a, b uint64) uint64 { return a - min(a, b) }

// most returns what a card can have counted: four times what its speed allows, over one more
// second, since some cards update their figures once a second. Software has no such limit.
func (k *link) most(elapsed time.Duration) func(i int) uint64 {
	if !k.hardware || k.speed == 0 {
		return nil
	}
	bytes := 4 * k.speed / 8 * (elapsed + time.Second).Seconds()
	if bytes >= math.MaxInt64 {
		return nil
	}
	const smallest = 60 // bytes of a frame without its checksum
	return func(i int) uint64 {
		if i == int(nl.RxBytes) || i == int(nl.TxBytes) {
			return uint64(bytes)
		}
		return uint64(bytes / smallest)
	}
}

// watchCarrier reports links that came and went.
func (k *link) watchCarrier(r *Reading, n *nl.LinkCounters, flaps uint32) {
	up := n.Up && n.Carrier
	switch {
	case up == k.up && up && flaps >= 2:
		r.happened(LinkDown, k.name,
			fmt.Sprintf("%s lost its link and has it again: %d changes of the carrier since the previous reading",
				k.name, flaps))
		r.happened(LinkUp, k.name, k.name+" has a link again")
	case up == k.up:
	case up:
		r.happened(LinkUp, k.name, k.name+" has a link")
	case n.Up:
		r.happened(LinkDown, k.name, k.name+" has no link any more")
	default:
		r.happened(LinkDown, k.name, k.name+" was taken down")
	}
	k.up = up
}

// countQdiscs sums what the disciplines of each interface dropped and hold.
func (s *Sampler) countQdiscs() {
	l := &s.links
	// Without a queue nothing waits and nothing is dropped.
	l.qdiscs = slices.DeleteFunc(l.qdiscs, func(q nl.QdiscCounters) bool { return q.Kind == "noqueue" })
	sorting.StableFunc(l.qdiscs, func(a, b nl.QdiscCounters) int { return a.Index - b.Index })
	for i := 0; i < len(l.qdiscs); {
		index, from := l.qdiscs[i].Index, i
		for i < len(l.qdiscs) && l.qdiscs[i].Index == index {
			i++
		}
		if k := l.byIndex[index]; k != nil {
			k.countQdiscs(l.qdiscs[from:i])
			k.queued = l.seen
		}
	}
}

// countQdiscs takes the largest figure of the tree, because a sum would count one drop at every
// level (see package host). When the root discipline changes, the counters begin again.
func (k *link) countQdiscs(tree []nl.QdiscCounters) {
	var now [3]uint64
	var root qdiscIdentity
	k.backlog = 0
	for _, q := range tree {
		if q.Parent == nl.RootParent {
			root = qdiscIdentity{q.Kind, q.Handle}
		}
		now[0] = max(now[0], uint64(q.Drops))
		now[1] = max(now[1], uint64(q.Requeues))
		now[2] = max(now[2], uint64(q.Overlimits))
		k.backlog = max(k.backlog, uint64(q.BacklogBytes))
	}
	if root != k.root {
		k.qdisc.begun = false
		k.root = root
	}
	k.qdisc.add(now[:], nil)
}

func (k *link) addQdiscs(r *Reading, seen int) {
	if k.queued != seen {
		for i := range k.waiting {
			k.waiting[i] = k.owned.drop(r, k.waiting[i])
		}
		k.dropped = k.owned.drop(r, k.dropped)
		return
	}
	if k.waiting[0] == nil {
		for i, m := range []*Metric{qdiscDrops, qdiscRequeues, qdiscOverlimits, qdiscBacklog} {
			k.waiting[i] = k.owned.add(m, k.name)
		}
		k.dropped = k.owned.add(interfaceDrops, k.name, "transmit", "qdisc")
	}
	for i, n := range k.qdisc.sum {
		r.put(k.waiting[i], float64(n))
	}
	r.put(k.waiting[3], float64(k.backlog))
	r.put(k.dropped, float64(k.qdisc.sum[0]))
}

// happened adds an event at the time of the reading.
func (r *Reading) happened(c Change, name, text string) {
	r.Happened = append(r.Happened, Happening{Time: r.Time, Change: c, Interface: name, Text: text})
}

// kindOf returns the word for the kind of an interface.
func kindOf(n *nl.LinkCounters) string {
	const etherType, infiniband = 1, 32 // linux/if_arp.h
	switch {
	case n.Loopback:
		return "loopback"
	case n.Kind != "":
		return n.Kind
	case n.Hardware == etherType:
		return "ethernet"
	case n.Hardware == infiniband:
		return "infiniband"
	}
	return "other"
}

// parentOf returns the name of the interface that carries this one.
func (s *Sampler) parentOf(n *nl.LinkCounters) string {
	// The other end of a pair carries nothing; its number may be of another namespace.
	if n.ParentIndex == 0 || nl.IsPair(n.Kind) || n.ParentIndex == n.Index {
		return ""
	}
	return s.links.names[n.ParentIndex]
}

// askSlowly asks for what the dump lacks: when the interface is new, when its link changed, and
// every slowEvery.
func (s *Sampler) askSlowly(r *Reading, k *link, n *nl.LinkCounters, changed bool) {
	due := k.asked == 0 || changed || r.SinceBoot-k.asked >= slowEvery
	parent := s.parentOf(n)
	if !due && parent == k.parent {
		return
	}
	first := k.asked == 0
	if k.asked = r.SinceBoot; first {
		k.asked -= time.Duration(k.index%int(slowEvery/time.Second)) * time.Second // not all in one reading
	}
	driver := s.driverOf(k, n)
	speed := s.speedOf(k, n)
	if !first && k.speed > 0 && speed > 0 && speed != k.speed {
		r.happened(LinkSpeed, k.name, fmt.Sprintf("%s runs at %s and ran at %s before", k.name, rateText(speed),
			rateText(k.speed)))
	}
	if speed > 0 {
		k.speed = speed
	}
	if k.info == nil || driver != k.driver || parent != k.parent {
		k.owned.drop(r, k.info)
		k.driver, k.parent = driver, parent
		k.info = k.owned.add(interfaceInfo, k.name, driver, kindOf(n), parent)
	}
}

// rateText formats a speed in its usual unit.
func rateText(bitsPerSecond float64) string {
	text := fmt.Sprintf("%.4g Mb/s", bitsPerSecond/1e6)
	if bitsPerSecond >= 1e9 {
		text = fmt.Sprintf("%.4g Gb/s", bitsPerSecond/1e9)
	}
	return strings.Replace(text, "e+0", "e", 1)
}

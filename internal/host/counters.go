package host

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/nl/route"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Counters takes one reading. It is made to run around every test: it reads each file of /proc
// once, no per-interface files except for cards on a bus, and no per-CPU tables of
// /proc/interrupts. Absent names are not known, or (irq.N only) never counted. The error is for a
// host that reports nothing at all; single unreadable files are warnings of the reading.
func (r Root) Counters() (*Counters, error) {
	if r.live() && !hostfs.LiveSupported {
		return nativeCounters()
	}
	src, err := r.open()
	if err != nil {
		return nil, err
	}
	defer src.close()
	return src.counters()
}

func (src *source) counters() (*Counters, error) {
	now := src.time()
	var said notes
	// The list of interfaces comes first: it shows the size of the reading, and growing a map costs
	// more than all parsing. The rest of a host is some 700 names and a few for each CPU.
	dev, err := src.Net("dev")
	set := procfs.NewCounts(896 + procfs.DevColumns*bytes.Count(dev, []byte{'\n'}))
	c := &Counters{Time: now, Values: set.Values}
	if err == nil {
		err = procfs.ParseDev(dev, set)
	}
	said.add("counters of /proc/net/dev", err)

	for _, f := range procfs.CounterFiles() {
		read, name := src.Read, "proc/"+f.Name
		if ofNamespace, ok := strings.CutPrefix(f.Name, "net/"); ok {
			read, name = src.Net, ofNamespace
		}
		b, err := read(name)
		if err == nil {
			err = f.Parse(b, set)
		}
		// A file that many kernels lack or restrict is skipped silently; a file that exists but
		// cannot be parsed is reported.
		if err != nil && (!f.Optional || errors.Is(err, procfs.ErrFormat)) {
			said.add("counters of /proc/"+f.Name, err)
		}
	}
	b, err := src.Read("proc/stat")
	if err == nil {
		var times []procfs.CPUTimes
		times, err = procfs.ParseStat(b, set)
		for _, t := range times {
			c.CPUs = append(c.CPUs, CPUTimes(t))
		}
	}
	if err != nil {
		said.add("processor time and interrupt counters", err)
	}
	countNeighbours(src, set)
	countQdiscs(src, set, &said)
	c.Drivers = countCards(src, set, &said)

	// Time and limits alone are no reading: two of them would not differ and look like a quiet
	// host.
	if len(c.CPUs) == 0 && !counts(c.Values) {
		return nil, fmt.Errorf("read counters: %w", errors.Join(said.causes...))
	}
	c.Warnings = said.sentences
	return c, nil
}

// counts reports whether any of the values is a counter, rather than a level or a limit.
func counts(values map[string]uint64) bool {
	for name := range values {
		if !procfs.Gauge(name) {
			return true
		}
	}
	return false
}

// countNeighbours adds what /proc shows in the first network namespace only: the neighbour tables.
// All namespaces share them, so that a container can fill them for its host and vice versa. The
// names are those of the columns in /proc/net/stat. A host that has these files is not asked twice;
// what a sandbox refuses is skipped silently, like the files.
func countNeighbours(src *source, set *procfs.Counts) {
	if _, known := set.Values["neigh.ipv4.entries"]; known || !src.Live() {
		return
	}
	client, err := src.dial()
	if err != nil {
		return
	}
	tables, err := route.New(client).NeighbourTables()
	if err != nil {
		return
	}
	for _, t := range tables {
		group := map[string]string{"arp_cache": "neigh.ipv4.", "ndisc_cache": "neigh.ipv6."}[t.Name]
		if group == "" {
			continue // DECnet's table, on some kernels
		}
		set.Put(uint64(t.Entries), group, "entries")
		for i, n := range t.Thresholds {
			set.Put(uint64(n), group, "gc_thresh", strconv.Itoa(i+1))
		}
		set.Put(t.ResolutionsFailed, group, "res_failed")
		set.Put(t.ForcedCollections, group, "forced_gc_runs")
		set.Put(t.Fulls, group, "table_fulls")
	}
}

// countQdiscs adds one figure per interface. tc(8) shows which discipline of a tree dropped; a test
// only needs to know whether this host dropped packets before the NIC.
func countQdiscs(src *source, set *procfs.Counts, said *notes) {
	qdiscs, err := src.qdiscs()
	if err != nil {
		said.add("queueing disciplines", err)
		return
	}
	for name, total := range qdiscTotals(qdiscs) {
		filtered, hasFilters := filterDrops(qdiscs, name)
		set.Put(total.Drops+filtered, "qdisc.", name, ".drops")
		if hasFilters {
			set.Put(filtered, "qdisc.", name, ".filter_drops")
		}
		set.Put(total.Requeues, "qdisc.", name, ".requeues")
		set.Put(total.Overlimits, "qdisc.", name, ".overlimits")
		set.Put(total.BacklogBytes, "qdisc.", name, ".backlog_bytes")
	}
}

// onlyFilters reports whether a discipline holds no queue and is in no tree: its drops are those of
// the filters that hang on it, for packets that arrive, or with clsact also for those that leave
// (sch_ingress.c).
func onlyFilters(q qdiscFact) bool { return q.Kind == "ingress" || q.Kind == "clsact" }

// filterDrops returns what the filters of an interface dropped outside of its tree of queues; false
// if it has no such discipline.
func filterDrops(qdiscs []qdiscFact, name string) (drops uint64, ok bool) {
	for _, q := range qdiscs {
		if q.Interface == name && onlyFilters(q) {
			drops, ok = drops+q.Drops, true
		}
	}
	return drops, ok
}

// qdiscTotals takes the largest figure among the disciplines of an interface's tree. A sum would
// count one drop at every level: the kernel adds children's drops to the parent
// (qdisc_tree_reduce_backlog), and mq and mqprio report the sum of theirs (mq_dump). The drops of
// filters outside of the tree are not among them: a larger figure of one would hide the other.
func qdiscTotals(qdiscs []qdiscFact) map[string]qdiscFact {
	totals := make(map[string]qdiscFact)
	for _, q := range qdiscs {
		t := totals[q.Interface]
		if !onlyFilters(q) {
			t.Drops = max(t.Drops, q.Drops)
		}
		t.Requeues = max(t.Requeues, q.Requeues)
		t.Overlimits = max(t.Overlimits, q.Overlimits)
		t.BacklogBytes = max(t.BacklogBytes, q.BacklogBytes)
		totals[q.Interface] = t
	}
	return totals
}

// cardErrors are the statistics that /proc/net/dev combines ("drop" there is rx_dropped, which only
// the kernel counts, + rx_missed_errors; "frame" is the sum of four) or lacks.
// Documentation/networking/statistics.rst.
var cardErrors = [...]struct {
	name  string // below statistics/
	count nl.LinkCount
}{
	// The NIC had no descriptor or no room for the packet: the ring was empty because the host or
	// the bus was too slow.
	{"rx_missed_errors", nl.RxMissedErrors}, {"rx_over_errors", nl.RxOverErrors},
	// The packet arrived damaged: cable, connector, transceiver, or two ends that disagree about
	// duplex or MTU.
	{"rx_crc_errors", nl.RxCRCErrors}, {"rx_length_errors", nl.RxLengthErrors}, {"rx_frame_errors", nl.RxFrameErrors},
	// No handler wanted it: mostly an inactive member of a bond (since Linux 4.6).
	{"rx_nohandler", nl.RxNoHandler},
	// The packet could not be sent. All but the loss of the carrier belong to half duplex.
	{"tx_aborted_errors", nl.TxAbortedErrors}, {"tx_carrier_errors", nl.TxCarrierErrors},
	{"tx_heartbeat_errors", nl.TxHeartbeatErrors}, {"tx_window_errors", nl.TxWindowErrors},
}

// countCards adds, for interfaces with hardware, the statistics that /proc/net/dev combines and
// those of the driver. It returns the drivers by interface.
func countCards(src *source, set *procfs.Counts, said *notes) map[string]string {
	drivers := make(map[string]string)
	cards := slices.DeleteFunc(slices.Clone(set.Interfaces), func(name string) bool {
		return !src.Exists("sys/class/net/" + name + "/device")
	})
	// Cards only: a host with a thousand veths has two cards, and software has none of these
	// errors.
	shown := slices.DeleteFunc(slices.Clone(cards), func(name string) bool { return !src.sysfsShows(name) })
	for _, name := range shown {
		dir := "sys/class/net/" + name
		if device, ok := src.Resolve(dir + "/device"); ok {
			if driver, ok := src.Link(device + "/driver"); ok {
				drivers[name] = path.Base(driver)
			}
		}
		// First: some drivers read the NIC every two seconds, and whenever they are asked for their
		// own statistics (e1000_update_stats in e1000_main.c).
		stats, err := src.driverStatistics(name)
		putStatistics(set, name, stats, err, said)
		for _, stat := range cardErrors {
			if n, ok := procfs.ParseUint([]byte(src.Optional(dir + "/statistics/" + stat.name))); ok {
				set.Put(n, "nic.", name, ".", stat.name)
			}
		}
		// How often the link came or went, since Linux 3.15: a test in which it did is no test of
		// the link.
		if n, ok := procfs.ParseUint([]byte(src.Optional(dir + "/carrier_changes"))); ok {
			set.Put(n, "nic.", name, ".carrier_changes")
		}
		if n, ok := procfs.ParseUint([]byte(src.Optional(dir + "/statistics/rx_dropped"))); ok {
			set.Values["nic."+name+".rx_dropped"] = n
			continue
		}
		// Of an archive without that file, both parts are known now.
		if missed, drop := set.Values["nic."+name+".rx_missed_errors"],
			set.Values["nic."+name+".rx_dropped"]; drop >= missed {
			set.Values["nic."+name+".rx_dropped"] = drop - missed
		}
	}
	absent := func(name string) bool { return !src.Exists("sys/class/net/" + name) }
	if len(shown) < len(cards) || slices.ContainsFunc(set.Interfaces, absent) {
		countHidden(src, set, said, shown, drivers)
	}
	for _, bond := range strings.Fields(src.Optional("sys/class/net/bonding_masters")) {
		drivers[bond] = "bonding"
	}
	return drivers
}

// countHidden does the same by netlink where sysfs belongs to another network namespace: in a
// process that was moved to this one, and in a container with the /sys of its host. A link without
// a kind is a NIC; those that sysfs has shown are counted already. One without a carrier may be
// asleep, and is not asked for its driver's statistics.
func countHidden(src *source, set *procfs.Counts, said *notes, shown []string, drivers map[string]string) {
	if !src.Live() {
		return
	}
	client, err := src.dial()
	if err != nil {
		return // known: the notes about sysfs report it
	}
	links, err := client.LinkCounters(nil)
	if err != nil {
		said.add("counters of the interfaces", err)
		return
	}
	links = slices.DeleteFunc(links, func(l nl.LinkCounters) bool {
		return l.Kind != "" || l.Loopback || slices.Contains(shown, l.Name)
	})
	for _, l := range links {
		if info, err := ethtool.New(client).Driver(l.Name); err == nil {
			drivers[l.Name] = info.Driver
		}
		if l.Carrier {
			stats, err := src.askStatistics(l.Name)
			putStatistics(set, l.Name, stats, err, said)
		}
	}
	fresh, err := client.LinkCounters(nil)
	if err != nil {
		said.add("counters of the interfaces", err)
		return
	}
	for _, l := range fresh {
		if !slices.ContainsFunc(links, func(was nl.LinkCounters) bool { return was.Index == l.Index }) {
			continue
		}
		for _, stat := range cardErrors {
			set.Put(l.Counts[stat.count], "nic.", l.Name, ".", stat.name)
		}
		set.Put(uint64(l.CarrierChanges), "nic.", l.Name, ".carrier_changes")
		set.Values["nic."+l.Name+".rx_dropped"] = l.Counts[nl.RxDropped]
	}
}

func putStatistics(set *procfs.Counts, name string, stats map[string]uint64, err error, said *notes) {
	if err != nil && !errors.Is(err, errNotArchived) {
		said.add("driver statistics of "+name, err)
	}
	for stat, v := range stats {
		set.Put(v, "ethtool.", name, ".", stat)
	}
}

// Sub returns the difference of two readings. Gauges keep their later value. A counter that went
// backwards wrapped if the kernel keeps it in 32 bits; otherwise it was reset (driver reloaded,
// interface created again) and counts from zero. A name only in after is new and counts in full; a
// name only in before is left out. A processor that came online in between, which keeps its counts
// while it is offline, is left out too, also of the sums. Nil is an empty reading.
func Sub(before, after *Counters) *Counters {
	if after == nil {
		return &Counters{Values: map[string]uint64{}}
	}
	if before == nil {
		before = &Counters{Time: after.Time}
	}
	d := &Counters{
		Time:     after.Time,
		Seconds:  max(0, after.Time.Sub(before.Time).Seconds()),
		Values:   make(map[string]uint64, len(after.Values)),
		CPUs:     make([]CPUTimes, 0, len(after.CPUs)),
		Drivers:  maps.Clone(after.Drivers),
		Warnings: slices.Clone(after.Warnings),
	}
	// What processors that came online take into the sums, less what those that went took out.
	moved := make(map[string]uint64)
	for name, was := range before.Values {
		if _, still := after.Values[name]; !still {
			moved[sumOf(name)] -= was
		}
	}
	for name, now := range after.Values {
		// A map returns 0 for an absent name, the value with which a new counter began.
		was, known := before.Values[name]
		if _, other := before.Values[sumOf(name)]; !known && other {
			moved[sumOf(name)] += now
			continue
		}
		d.Values[name] = procfs.Difference(name, was, now)
	}
	for sum, n := range moved {
		if now, ok := after.Values[sum]; ok {
			d.Values[sum] = procfs.Difference(sum, before.Values[sum]+n, now)
		}
	}
	was := make(map[int]CPUTimes, len(before.CPUs))
	for _, cpu := range before.CPUs {
		was[cpu.CPU] = cpu
	}
	for _, now := range after.CPUs {
		b, known := was[now.CPU]
		if !known && len(was) > 0 {
			continue
		}
		// iowait and steal are known to step back by a tick (proc_stat.rst); time does not.
		d.CPUs = append(d.CPUs, CPUTimes{
			CPU:     now.CPU,
			User:    max(0, now.User-b.User),
			Nice:    max(0, now.Nice-b.Nice),
			System:  max(0, now.System-b.System),
			IRQ:     max(0, now.IRQ-b.IRQ),
			SoftIRQ: max(0, now.SoftIRQ-b.SoftIRQ),
			Steal:   max(0, now.Steal-b.Steal),
			Idle:    max(0, now.Idle-b.Idle),
		})
	}
	return d
}

// sumOf returns the name of the sum over the online processors that a count of one of them is part
// of; empty for every other name.
func sumOf(name string) string {
	if rest, ok := strings.CutPrefix(name, "softnet."); ok {
		if _, column, ofOne := strings.Cut(rest, "."); ofOne {
			return "softnet." + column
		}
	}
	return ""
}

// Names returns the names of the reading, sorted for printing.
func (c *Counters) Names() []string { return slices.Sorted(maps.Keys(c.Values)) }

// Busy returns the time in seconds that the CPU was neither idle nor stolen by the hypervisor.
func (t CPUTimes) Busy() float64 { return t.User + t.System + t.IRQ + t.SoftIRQ }

// Total returns all accounted time in seconds.
func (t CPUTimes) Total() float64 { return t.Busy() + t.Steal + t.Idle }

// time returns now, or when the archive was taken; zero if the archive does not record it.
func (src *source) time() time.Time {
	if src.Live() {
		return time.Now()
	}
	return src.hostFile().Time
}

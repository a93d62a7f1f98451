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
	"github.com/linerate/linerate/internal/kernel/nl/route"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Counters takes one reading. It is made to be called around every test: one read of each file of
// /proc, no per-interface files but for cards on a bus, no per-CPU tables of /proc/interrupts.
// Absent names are not known, or (irq.N only) never counted. The error is for a host that tells
// nothing at all; single files that cannot be read are warnings of the reading.
func (r Root) Counters() (*Counters, error) {
	if r.live() && !hostfs.LiveSupported {
		return nil, fmt.Errorf("read counters: %w", errors.ErrUnsupported)
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
	// The list of interfaces comes first: it tells how much there will be, and a map that grows
	// costs more than all parsing. The rest of a host is some 700 names and a few for each CPU.
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
		// What many kernels do not have, or not for everybody, is missed in silence; what is there
		// and cannot be understood is told.
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

	// Time and limits alone are no reading: two of them would differ by nothing and look like a
	// quiet host.
	if len(c.CPUs) == 0 && !counts(c.Values) {
		return nil, fmt.Errorf("read counters: %w", errors.Join(said.causes...))
	}
	c.Warnings = said.sentences
	return c, nil
}

// counts tells whether anything among them is counted, rather than a level or a limit.
func counts(values map[string]uint64) bool {
	for name := range values {
		if !procfs.Gauge(name) {
			return true
		}
	}
	return false
}

// countNeighbours fills in what /proc tells in the first network namespace alone: the tables of
// neighbours, which are one for all namespaces, so that a container can fill them for its host and
// the other way round. The names are those of the columns in /proc/net/stat. A host that tells them
// there is not asked twice, and what a sandbox refuses is missed in silence, like the file.
func countNeighbours(src *source, set *procfs.Counts) {
	if _, told := set.Values["neigh.ipv4.entries"]; told || !src.Live() {
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
			continue // of DECnet, once
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

// countQdiscs gives one figure per interface. Which discipline of a tree dropped is for tc(8) to
// say; a test asks whether this host dropped at all before the card.
func countQdiscs(src *source, set *procfs.Counts, said *notes) {
	qdiscs, err := src.qdiscs()
	if err != nil {
		said.add("queueing disciplines", err)
		return
	}
	for name, total := range qdiscTotals(qdiscs) {
		set.Put(total.Drops, "qdisc.", name, ".drops")
		set.Put(total.Requeues, "qdisc.", name, ".requeues")
		set.Put(total.Overlimits, "qdisc.", name, ".overlimits")
		set.Put(total.BacklogBytes, "qdisc.", name, ".backlog_bytes")
	}
}

// qdiscTotals takes the largest figure of an interface's disciplines. A sum would count one drop at
// every level: a parent is told of its children's drops (qdisc_tree_reduce_backlog), and mq and
// mqprio report the sum of theirs (mq_dump).
func qdiscTotals(qdiscs []toldQdisc) map[string]toldQdisc {
	totals := make(map[string]toldQdisc)
	for _, q := range qdiscs {
		t := totals[q.Interface]
		t.Drops = max(t.Drops, q.Drops)
		t.Requeues = max(t.Requeues, q.Requeues)
		t.Overlimits = max(t.Overlimits, q.Overlimits)
		t.BacklogBytes = max(t.BacklogBytes, q.BacklogBytes)
		totals[q.Interface] = t
	}
	return totals
}

// cardErrors are the statistics that /proc/net/dev mixes together ("drop" there is rx_dropped +
// rx_missed_errors, "frame" the sum of four), or has not at all.
// Documentation/networking/statistics.rst.
var cardErrors = [...]string{
	// The card had no descriptor or no room for the packet: the ring was empty because the host was
	// too slow, or the bus was.
	"rx_missed_errors", "rx_over_errors",
	// The packet came broken: cable, connector, transceiver, or two ends that disagree about duplex
	// or MTU.
	"rx_crc_errors", "rx_length_errors", "rx_frame_errors",
	// Nobody wanted it: an inactive member of a bond, mostly (since Linux 4.6).
	"rx_nohandler",
	// The packet could not be sent: of half duplex all of them, but for the loss of the carrier.
	"tx_aborted_errors", "tx_carrier_errors", "tx_heartbeat_errors", "tx_window_errors",
}

// countCards adds, for interfaces with hardware below, the statistics that /proc/net/dev does not
// tell apart and those of the driver, and gives the drivers.
func countCards(src *source, set *procfs.Counts, said *notes) map[string]string {
	drivers := make(map[string]string)
	cards := slices.DeleteFunc(slices.Clone(set.Interfaces), func(name string) bool {
		return !src.Exists("sys/class/net/" + name + "/device")
	})
	// Cards only: a host with a thousand veths has two cards, and software has none of these
	// errors.
	for _, name := range cards {
		dir := "sys/class/net/" + name
		if !src.sysfsShows(name) {
			continue
		}
		if device, ok := src.Resolve(dir + "/device"); ok {
			if driver, ok := src.Link(device + "/driver"); ok {
				drivers[name] = path.Base(driver)
			}
		}
		for _, stat := range cardErrors {
			if n, ok := procfs.ParseUint([]byte(src.Optional(dir + "/statistics/" + stat))); ok {
				set.Put(n, "nic.", name, ".", stat)
			}
		}
		// How often the link came or went, since Linux 3.15: a test during which it did is no test
		// of the link.
		if n, ok := procfs.ParseUint([]byte(src.Optional(dir + "/carrier_changes"))); ok {
			set.Put(n, "nic.", name, ".carrier_changes")
		}
		// Now that both are known, rx_dropped gets back the meaning that it has in sysfs: dropped
		// by the kernel and not by the card.
		if missed, drop := set.Values["nic."+name+".rx_missed_errors"],
			set.Values["nic."+name+".rx_dropped"]; drop >= missed {
			set.Values["nic."+name+".rx_dropped"] = drop - missed
		}
		stats, err := src.driverStatistics(name)
		if err != nil && !errors.Is(err, errNotTold) {
			said.add("driver statistics of "+name, err)
		}
		for stat, v := range stats {
			set.Put(v, "ethtool.", name, ".", stat)
		}
	}
	for _, bond := range strings.Fields(src.Optional("sys/class/net/bonding_masters")) {
		drivers[bond] = "bonding"
	}
	return drivers
}

// Sub gives what was counted between two readings. Gauges keep their later value. A counter that
// went backwards wrapped if it is one of those that the kernel keeps in 32 bits; otherwise it was
// reset (driver reloaded, interface made anew) and counts from zero. A name that is in after only
// is new and counts whole; one in before only is gone and is left out. Nil counts as an empty
// reading.
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
	for name, now := range after.Values {
		// Absent is 0 in a map, which is what a counter that is new began with.
		d.Values[name] = procfs.Difference(name, before.Values[name], now)
	}
	was := make(map[int]CPUTimes, len(before.CPUs))
	for _, cpu := range before.CPUs {
		was[cpu.CPU] = cpu
	}
	for _, now := range after.CPUs {
		b := was[now.CPU]
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

// Names gives the names of the reading, sorted: the order in which to print it.
func (c *Counters) Names() []string { return slices.Sorted(maps.Keys(c.Values)) }

// Busy is the time in seconds that the CPU was neither idle nor stolen by the hypervisor.
func (t CPUTimes) Busy() float64 { return t.User + t.System + t.IRQ + t.SoftIRQ }

// Total is all the time in seconds that is accounted for.
func (t CPUTimes) Total() float64 { return t.Busy() + t.Steal + t.Idle }

// time is now, or when the archive was taken; zero where it does not say.
func (src *source) time() time.Time {
	if src.Live() {
		return time.Now()
	}
	return src.hostFile().Time
}

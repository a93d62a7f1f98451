package host

import "time"

// Snapshot is the state of one host at one moment, read only. It travels between hosts and is the
// body of linerate.inspect/1. The moment is not a point: files are read one after the other, and
// Linux cannot freeze a host.
type Snapshot struct {
	Name   string `json:"name"`
	OS     string `json:"os"`                // GOOS
	Kernel string `json:"kernel"`            // release, as uname -r
	Arch   string `json:"arch"`              // GOARCH word: amd64, arm64, …
	BootID string `json:"boot_id,omitempty"` // random, new at every start: counters of two boots cannot be compared
	// Virtualization is kvm, vmware, xen, container, vm (a hypervisor that hides its name),
	// kvm+container, … ; empty: none found.
	Virtualization string `json:"virtualization,omitempty"`
	// without what firmware and the kernel image occupy (MemTotal)
	MemoryBytes int64     `json:"memory_bytes,omitempty"`
	Time        time.Time `json:"time"`
	// BootTime is when the system started, to the second. Counters since boot are divided by the
	// time since then, see [Snapshot.Uptime].
	BootTime   time.Time   `json:"boot_time,omitzero"`
	Interfaces []Interface `json:"interfaces"`
	CPUs       []CPU       `json:"cpus"`
	Settings   []Setting   `json:"settings"`
	Routes     []Route     `json:"routes,omitempty"`
	Platform
	// what could not be read, one sentence each, with the kernel's error text
	Warnings []string `json:"warnings,omitempty"`
}

// Interface is one network interface. A nil pointer or empty field means not known; it never means
// zero.
//
// Where netlink and sysfs report the same fact, such as speed and duplex, sysfs wins if it shows
// the calling thread's namespace: it is the driver's own answer and exists on every kernel, while
// the netlink family of ethtool came with Linux 5.6.
type Interface struct {
	Name   string `json:"name"`
	Index  int    `json:"index"`            // unique in one network namespace only
	Driver string `json:"driver,omitempty"` // veth, e1000e, virtio_net, …
	MAC    string `json:"mac,omitempty"`
	// Up is the administrative state (IFF_UP), Carrier the state of the link.
	Up         bool `json:"up"`
	Carrier    bool `json:"carrier"`
	Virtual    bool `json:"virtual"` // no bus below it: its speed is a configured number, not a fact
	MTUBytes   int  `json:"mtu_bytes"`
	TxQueueLen int  `json:"tx_queue_length_packets,omitempty"`
	// SpeedBitsPerSec and Duplex (full, half) are as negotiated, so they are absent without
	// carrier.
	SpeedBitsPerSec float64 `json:"speed_bits_per_second,omitempty"`
	Duplex          string  `json:"duplex,omitempty"`
	Bus             *Bus    `json:"bus,omitempty"`
	// node whose memory is near the card; nil: the machine has one, or it is not known
	NUMANode *int   `json:"numa_node,omitempty"`
	Rings    *Rings `json:"rings,omitempty"`
	// ethtool names: rx-usecs, rx-frames, tx-usecs, adaptive-rx (0/1), …
	Coalesce  map[string]uint32  `json:"coalesce,omitempty"`
	Features  map[string]Feature `json:"features,omitempty"` // kernel names: tx-tcp-segmentation, rx-gro, …
	Queues    []Queue            `json:"queues,omitempty"`
	Channels  *Channels          `json:"channels,omitempty"`
	Addresses []string           `json:"addresses,omitempty"` // CIDR
	Qdisc     string             `json:"qdisc,omitempty"`
	Counters  map[string]uint64  `json:"counters,omitempty"` // /sys/class/net/X/statistics names
	Layers
	// Asleep: the device is powered down until it is needed. It was not woken, so little is known
	// about it.
	Asleep     bool        `json:"asleep,omitempty"`
	Card       *Card       `json:"card,omitempty"` // nil: software, or nothing is known
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	NAPI       *NAPI       `json:"napi,omitempty"`
	Symptoms   []Symptom   `json:"symptoms,omitempty"` // most frequent first
}

// Bus is the bus of a card and the capacity of its slot. Capacities are nominal, after line coding
// and before any protocol of the bus: per direction for pcie, for both together for pci, pci-x and
// usb 2. It has the fields of bus.Slot in their order, with the key names of documents.
type Bus struct {
	// pci, pci-x, pcie, virtio, usb, isa, or the kernel's name (xen, vmbus, platform, …)
	Kind                  string  `json:"kind"`
	Address               string  `json:"address,omitempty"`
	CapacityBitsPerSec    float64 `json:"capacity_bits_per_second,omitempty"`     // as negotiated now
	MaxCapacityBitsPerSec float64 `json:"max_capacity_bits_per_second,omitempty"` // what card and slot support
	Width                 int     `json:"width,omitempty"`                        // PCIe lanes or PCI bits
	SpeedGigatransfers    float64 `json:"speed_gigatransfers_per_second,omitempty"`
	// LimitedBy is the address of the bridge above the card whose link is narrower than the card's
	// own; empty if the card's own link is the narrowest.
	LimitedBy string `json:"limited_by,omitempty"`
	// SharedWith are the addresses of the other devices that share this capacity: neighbours on a
	// conventional bus, other functions of the card.
	SharedWith []string `json:"shared_with,omitempty"`
	// What card and slot support: lanes or bits, and the speed of a PCIe lane. For a parallel bus
	// the transfers: its clock, or up to four times that on PCI-X 2.0.
	MaxWidth              int     `json:"max_width,omitempty"`
	MaxSpeedGigatransfers float64 `json:"max_speed_gigatransfers_per_second,omitempty"`
	Megatransfers         float64 `json:"megatransfers_per_second,omitempty"`
	MaxMegatransfers      float64 `json:"max_megatransfers_per_second,omitempty"`
}

// Rings are the descriptor rings of a card. All receive rings have one size, and so have all
// transmit rings.
type Rings struct {
	Rx Ring `json:"rx"`
	Tx Ring `json:"tx"`
}

// Ring is one descriptor ring, in descriptors: a packet takes one or more of them, so a ring holds
// at most that many packets.
type Ring struct {
	Current uint32 `json:"current"`
	Max     uint32 `json:"max"`
}

// Feature is one offload of an interface. Fixed means that the driver does not allow a change. A
// feature that is off and not fixed may still be unavailable: some features need others
// (segmentation needs checksums and scatter-gather).
type Feature struct {
	On    bool `json:"on"`
	Fixed bool `json:"fixed,omitempty"`
}

// Queue is one hardware or software queue with its steering (networking/scaling.rst). Masks are
// groups of eight digits separated by commas, the highest CPUs first; all zeros: no steering.
type Queue struct {
	Name    string `json:"name"`               // rx-0, tx-0
	RPSCPUs string `json:"rps_cpus,omitempty"` // hex mask as the kernel prints it
	XPSCPUs string `json:"xps_cpus,omitempty"`
	// RFSEntries is the number of flows of this queue that the kernel steers to the CPU of their
	// reader; 0: RFS is off.
	RFSEntries uint32 `json:"rfs_entries,omitempty"`
	// hex mask: packets leave by the queue of the flow's arrivals (since Linux 4.18)
	XPSRxQueues string `json:"xps_rxqs,omitempty"`
	// Counters are the driver's own for this queue, without the queue in their names: packets,
	// bytes, drops, … Nil: the driver keeps none, or in an unknown form.
	Counters map[string]uint64 `json:"counters,omitempty"`
}

// Channels are the queue counts of a card: queues that serve both directions are combined. A
// channel is an interrupt and the queues that it serves, so more channels than CPUs are of little
// use.
type Channels struct {
	Combined    uint32 `json:"combined"`
	MaxCombined uint32 `json:"max_combined"`
	Rx          uint32 `json:"rx"`
	MaxRx       uint32 `json:"max_rx"`
	Tx          uint32 `json:"tx"`
	MaxTx       uint32 `json:"max_tx"`
}

// CPU is one online logical processor. Its clocks are the present one and the governor's limits;
// virtual machines report only the first, arm64 none without a frequency driver.
type CPU struct {
	ID         int    `json:"id"`
	Model      string `json:"model,omitempty"`
	NUMANode   int    `json:"numa_node"`
	CurrentMHz int    `json:"current_megahertz,omitempty"`
	MaxMHz     int    `json:"max_megahertz,omitempty"`
	Governor   string `json:"governor,omitempty"`
	// LimitMHz is the highest clock that the policy allows (scaling_max_freq), FrequencyDriver the
	// driver that sets it.
	LimitMHz        int    `json:"limit_megahertz,omitempty"`
	FrequencyDriver string `json:"frequency_driver,omitempty"`
	// StealRatio is the share of the time since boot in which the hypervisor ran other guests here
	// although this one had work.
	StealRatio float64 `json:"steal_ratio,omitempty"`
}

// Setting is one tunable as read: the knob's name and its value in canonical form (fields separated
// by one blank).
type Setting struct {
	Knob  string `json:"knob"`
	Value string `json:"value"`
}

// Route is one route of the main table with the metrics that affect speed (ip-route(8)). Zero means
// not set: the kernel then uses its settings. Windows are those of one connection; initcwnd and
// initrwnd count segments of full size.
type Route struct {
	Destination string  `json:"destination"`        // CIDR; "default" for IPv4's 0.0.0.0/0, "::/0" for IPv6's
	Source      string  `json:"source,omitempty"`   // the source address of packets that have none yet
	Priority    int     `json:"metric,omitempty"`   // the lowest among routes to one destination is used
	Protocol    string  `json:"protocol,omitempty"` // the origin: kernel, boot, static, ra, dhcp, …
	Gateway     string  `json:"gateway,omitempty"`
	Interface   string  `json:"interface"`
	WindowBytes int     `json:"window_bytes,omitempty"`
	MTUBytes    int     `json:"mtu_bytes,omitempty"`
	InitCwnd    int     `json:"initcwnd_packets,omitempty"`
	InitRwnd    int     `json:"initrwnd_packets,omitempty"`
	AdvMSSBytes int     `json:"advmss_bytes,omitempty"`
	Quickack    bool    `json:"quickack,omitempty"`
	Congestion  string  `json:"congestion_control,omitempty"`
	RTOMinSec   float64 `json:"rto_min_seconds,omitempty"` // lower bound of the retransmission timeout
	ECN         bool    `json:"ecn,omitempty"`             // new connections ask for explicit congestion notification
	// metrics that the kernel does not adapt: mtu_lock, congctl_lock
	Locked []string `json:"locked,omitempty"`
}

// Counters is one reading of everything the kernel counts, flat, so that any two readings can be
// subtracted.
//
// Counts:
//
//	Tcp.RetransSegs, TcpExt.TCPTimeouts, Udp.RcvbufErrors   /proc/net/snmp and netstat, the
//	                                                        kernel's words
//	Udp6.RcvbufErrors, Icmp6.InPktTooBigs                   /proc/net/snmp6; TCP counts both versions
//	                                                        in the first
//	IcmpMsg.InType3, .OutType3                              destination unreachable, all codes
//	softnet.dropped, softnet.0.dropped                      all CPUs, and CPU 0; also processed, …
//	nic.eth0.rx_bytes                                       the names of /sys/class/net/X/statistics
//	nic.eth0.carrier_changes                                of cards on a bus: how often the link
//	                                                        came or went
//	ethtool.eth0.NAME                                       of cards on a bus, by the driver's name
//	qdisc.eth0.drops, .requeues, .overlimits                packets; the largest figure of the tree,
//	                                                        with the next one
//	qdisc.eth0.filter_drops                                 by filters of ingress and clsact
//	irq.45, softirq.NET_RX, ctxt                            numbered interrupts only; context
//	                                                        switches
//	softirq.NET_RX.3, softirq.NET_TX.3                      on CPU 3, if it ever ran one
//	conntrack.drop, .early_drop, .insert_failed, .found, …  /proc/net/stat/nf_conntrack, all CPUs
//	neigh.ipv4.table_fulls, .unresolved_discards, …         /proc/net/stat/*_cache; all namespaces
//	nfqueue.dropped, .user_dropped                          packets that a verdict program could not
//	                                                        take (root only)
//	pressure.cpu.some_microseconds, pressure.memory.full_…  time in which some or all tasks waited
//	                                                        (since Linux 4.20)
//
// Gauges, of which only the later reading matters:
//
//	Tcp.CurrEstab, conntrack.count                          connections; conntrack.max is the limit
//	tcpmem.pages, udpmem.pages                              pages of memory, of the whole machine
//	tcpmem.low_pages, .pressure_pages, .max_pages           net.ipv4.tcp_mem, and udpmem.* udp_mem
//	sockets.tcp_inuse, .tcp_orphan, .tcp_tw, .tcp_alloc, sockets.udp_inuse
//	sockets.tcp_orphan_max, .tcp_tw_max                     net.ipv4.tcp_max_orphans,
//	                                                        tcp_max_tw_buckets
//	sockets.port_first, .port_last                          net.ipv4.ip_local_port_range
//	neigh.ipv4.entries, .gc_thresh1, .gc_thresh2, .gc_thresh3
//	nfqueue.waiting                                         packets that wait for a program's verdict
//	qdisc.eth0.backlog_bytes                                waiting to be sent
//
// Values of the first network namespace are absent in others: the neighbours' counters and limits,
// tcp_mem, udp_mem. Left out are MPTCP, UDP-Lite, other types of ICMP by number, and entries of
// snmp that are not counts.
type Counters struct {
	Time time.Time `json:"time"` // of the reading; in a difference, of the later one
	// Seconds is the time between the two readings of a difference; 0 in a reading.
	Seconds float64 `json:"interval_seconds,omitempty"`
	// Values are as the kernel counts them, by the names above; they include the gauges, see
	// [Sub].
	Values map[string]uint64 `json:"values"`
	CPUs   []CPUTimes        `json:"cpus"`
	// Drivers maps cards and bonds to their drivers, which define the names of ethtool; a bond sums
	// the counters of its members.
	Drivers map[string]string `json:"drivers,omitempty"`
	// Warnings are what could not be read, one sentence each.
	Warnings []string `json:"warnings,omitempty"`
}

// CPUTimes is the time that one CPU spent in each class since boot (or, in a difference, in the
// interval), in seconds. The kernel counts in steps of 10 ms. Without CONFIG_IRQ_TIME_ACCOUNTING it
// assigns the whole step to the class that the timer interrupted: shares of an interval of less
// than a second are rough, and IRQ is then mostly 0.
type CPUTimes struct {
	CPU     int     `json:"cpu"` // -1: all together
	User    float64 `json:"user_seconds"`
	Nice    float64 `json:"nice_seconds,omitempty"` // part of User: programs of a lower priority, which delay no other
	System  float64 `json:"system_seconds"`
	IRQ     float64 `json:"irq_seconds"`
	SoftIRQ float64 `json:"softirq_seconds"`
	Steal   float64 `json:"steal_seconds"`
	Idle    float64 `json:"idle_seconds"` // idle and iowait
}

package host

import "github.com/linerate/linerate/internal/host/owner"

// Platform is what surrounds the NICs and affects their speed: queues before them, sleep states of
// the CPUs, kernel tables that can fill, network file systems, and other programs that change the
// same knobs.
type Platform struct {
	Qdiscs []Qdisc `json:"qdiscs,omitempty"`
	// Softnet counts what each CPU received by softirq, for the whole machine, even in a container.
	Softnet []Softnet `json:"softnet,omitempty"`
	Idle    *Idle     `json:"idle,omitempty"`
	Tables  []Table   `json:"tables,omitempty"`
	// Firewall lists the nftables chains that packets pass. Nil: no chains, or not permitted to
	// read them; archives have none.
	Firewall []FirewallChain `json:"firewall,omitempty"`
	// KernelLog is what the kernel said about the NICs. Nil: nothing, or not permitted to read it;
	// archives have none.
	KernelLog []KernelEvent `json:"kernel_log,omitempty"`
	Mounts    []Mount       `json:"mounts,omitempty"` // NFS only
	Owners    []owner.Owner `json:"owners,omitempty"`
}

// Qdisc is one queueing discipline with its totals (tc -s qdisc).
type Qdisc struct {
	Interface string `json:"interface"`
	Kind      string `json:"kind"`
	Handle    string `json:"handle,omitempty"` // as tc prints it: "8001:"; empty: the kernel's own, which has none
	Parent    string `json:"parent"`           // "root", or the class that holds it: "8001:1"
	QdiscState
}

// QdiscState holds a discipline's counters and settings. The kernel counts losses in 32 bits, so
// the figures of a busy host wrap. A parent counts its children's drops as well.
type QdiscState struct {
	Drops        uint64 `json:"drops_total"`
	Requeues     uint64 `json:"requeues_total"`   // returned to the queue because the NIC's ring was full
	Overlimits   uint64 `json:"overlimits_total"` // delayed, which is a shaper's work and no fault
	BacklogBytes uint64 `json:"backlog_bytes"`
	// Older archives lack the figures below: there absent means not known, otherwise it means
	// zero.
	BacklogPackets uint64 `json:"backlog_packets,omitempty"`
	Bytes          uint64 `json:"bytes_total,omitempty"` // sent
	Packets        uint64 `json:"packets_total,omitempty"`
	// Parameters are those of fq, fq_codel, cake, pfifo and bfifo, by the names and in the units of
	// tc(8): limit, target, quantum, …
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Softnet is one line of /proc/net/softnet_stat. Counts are since boot and have 32 bits in the
// kernel, so those of a busy host wrap.
type Softnet struct {
	CPU       int    `json:"cpu"`
	Processed uint64 `json:"processed_packets_total"`
	Dropped   uint64 `json:"dropped_packets_total"` // the backlog was full (netdev_max_backlog)
	// rounds that ended with work left (netdev_budget, netdev_budget_usecs)
	TimeSqueeze uint64 `json:"time_squeeze_total"`
	// times that another CPU woke this one for steered packets
	ReceivedRPS uint64 `json:"received_rps_total,omitempty"`
	FlowLimit   uint64 `json:"flow_limit_packets_total,omitempty"` // of flows that occupied most of the backlog
}

// Idle describes how the CPUs sleep (Documentation/admin-guide/pm/cpuidle.rst). An arriving packet
// waits until its CPU wakes up.
type Idle struct {
	Driver   string      `json:"driver,omitempty"` // intel_idle, acpi_idle, haltpoll, …
	Governor string      `json:"governor,omitempty"`
	States   []IdleState `json:"states"` // lightest first
}

// IdleState is one sleep state, as on the first CPU.
type IdleState struct {
	Name           string  `json:"name"` // POLL, C1, C1E, C6, …
	LatencySeconds float64 `json:"exit_latency_seconds"`
	// Disabled lists the CPUs that may not use it: "0-3,8". Empty: all may.
	Disabled string `json:"disabled_cpus,omitempty"`
}

// Table is a kernel table that can fill; the kernel drops or refuses what exceeds it.
type Table struct {
	// Name is conntrack, neighbours-ipv4, neighbours-ipv6, tcp-sockets, tcp-orphans, tcp-time-wait,
	// udp-sockets, tcp-memory or udp-memory; memory is counted in pages.
	Name    string `json:"name"`
	Entries uint64 `json:"entries"`
	Limit   uint64 `json:"limit,omitempty"` // 0: no limit, or not known
}

// FirewallChain is a base chain of nftables with the number of its rules. It has the fields of
// nft.Chain in their order.
type FirewallChain struct {
	Family   string `json:"family"` // ip, ip6, inet, arp, bridge, netdev
	Table    string `json:"table"`
	Name     string `json:"chain"`
	Type     string `json:"type"` // filter, route, or nat, which sees only the first packet of a connection
	Hook     string `json:"hook"` // prerouting, input, forward, output, postrouting, ingress, egress
	Priority int32  `json:"priority"`
	Rules    int    `json:"rules"`
	// Compared is the number of rules that the kernel evaluates for a packet of an existing
	// connection that matches none of them.
	Compared int `json:"compared_rules"`
	// AtMost is the same with every conditional jump taken, and Counting the number of those rules
	// that count packets without deciding anything; both absent in older documents.
	AtMost   int `json:"compared_rules_at_most,omitempty"`
	Counting int `json:"counting_rules,omitempty"`
	// Legacy says that the chain is one of x_tables (iptables-legacy), not of nftables.
	Legacy bool `json:"x_tables,omitempty"`
}

// Mount is an NFS mount with the options in force, as client and server agreed; fstab may have
// others.
type Mount struct {
	Source  string `json:"source"`
	Path    string `json:"path"`
	Type    string `json:"type"` // nfs (versions 2 and 3) or nfs4
	Options string `json:"options"`
}

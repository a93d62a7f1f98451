package host

import "github.com/linerate/linerate/internal/host/owner"

// Platform is what surrounds the cards and bears on their speed: queues in front of them,
// processors' sleep, tables that can be full, file systems that come over the network, and other
// programs that turn the same knobs.
type Platform struct {
	Qdiscs []Qdisc `json:"qdiscs,omitempty"`
	// Softnet is what each CPU took in by softirq. It is the whole machine's, also in a container.
	Softnet []Softnet `json:"softnet,omitempty"`
	Idle    *Idle     `json:"idle,omitempty"`
	Tables  []Table   `json:"tables,omitempty"`
	// Firewall are the chains of nftables that packets are led through. Nil: there are none, or
	// nobody was allowed to ask; archives have none.
	Firewall []FirewallChain `json:"firewall,omitempty"`
	Mounts   []Mount         `json:"mounts,omitempty"` // NFS alone
	Owners   []owner.Owner   `json:"owners,omitempty"`
}

// Qdisc is one queueing discipline with its totals (tc -s qdisc).
type Qdisc struct {
	Interface string `json:"interface"`
	Kind      string `json:"kind"`
	Handle    string `json:"handle,omitempty"` // as tc writes it: "8001:"; empty: the kernel's own, which has none
	Parent    string `json:"parent"`           // "root", or the class it hangs on: "8001:1"
	QdiscState
}

// QdiscState is what a discipline has counted and how it is set. The kernel counts losses in 32
// bits, so the figures of a busy host wrap; a parent counts its children's drops as well.
type QdiscState struct {
	Drops        uint64 `json:"drops_total"`
	Requeues     uint64 `json:"requeues_total"`   // taken back because the card's ring was full
	Overlimits   uint64 `json:"overlimits_total"` // had to wait, which is a shaper's work and no fault
	BacklogBytes uint64 `json:"backlog_bytes"`
	// The figures below are not in archives that are older than they; absent is then not known, and
	// zero else.
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
	CPU         int    `json:"cpu"`
	Processed   uint64 `json:"processed_packets_total"`
	Dropped     uint64 `json:"dropped_packets_total"`              // the backlog was full (netdev_max_backlog)
	TimeSqueeze uint64 `json:"time_squeeze_total"`                 // rounds that ended with work left (netdev_budget, netdev_budget_usecs)
	ReceivedRPS uint64 `json:"received_rps_total,omitempty"`       // times that another CPU woke this one for steered packets
	FlowLimit   uint64 `json:"flow_limit_packets_total,omitempty"` // of flows that had most of the backlog
}

// Idle is how the processors sleep (Documentation/admin-guide/pm/cpuidle.rst). A packet that
// arrives waits for the processor to wake up.
type Idle struct {
	Driver   string      `json:"driver,omitempty"` // intel_idle, acpi_idle, haltpoll, …
	Governor string      `json:"governor,omitempty"`
	States   []IdleState `json:"states"` // lightest first
}

// IdleState is one way to sleep, as the first processor has it.
type IdleState struct {
	Name           string  `json:"name"` // POLL, C1, C1E, C6, …
	LatencySeconds float64 `json:"exit_latency_seconds"`
	// Disabled are the processors that may not use it, as a list: "0-3,8". Empty: all may.
	Disabled string `json:"disabled_cpus,omitempty"`
}

// Table is something of the kernel's that can be full: what comes then is dropped or refused.
type Table struct {
	// Name is conntrack, neighbours-ipv4, neighbours-ipv6, tcp-sockets, tcp-orphans, tcp-time-wait,
	// udp-sockets, tcp-memory or udp-memory; memory is counted in pages.
	Name    string `json:"name"`
	Entries uint64 `json:"entries"`
	Limit   uint64 `json:"limit,omitempty"` // 0: none, or not known
}

// FirewallChain is a base chain of nftables, with how many rules it holds. It has the fields of
// nft.Chain in their order.
type FirewallChain struct {
	Family   string `json:"family"` // ip, ip6, inet, arp, bridge, netdev
	Table    string `json:"table"`
	Name     string `json:"chain"`
	Type     string `json:"type"` // filter, route, or nat, which only the first packet of a connection sees
	Hook     string `json:"hook"` // prerouting, input, forward, output, postrouting, ingress, egress
	Priority int32  `json:"priority"`
	Rules    int    `json:"rules"`
	// Compared is how many rules a packet of a connection that exists is compared with if it fits
	// none of them.
	Compared int `json:"compared_rules"`
}

// Mount is an NFS mount with the options that are in force, which are what client and server agreed
// on and not what fstab says.
type Mount struct {
	Source  string `json:"source"`
	Path    string `json:"path"`
	Type    string `json:"type"` // nfs (versions 2 and 3) or nfs4
	Options string `json:"options"`
}

package host

import "github.com/linerate/linerate/internal/host/optic"

// Layers describes what an interface is made of. Names are those of other interfaces of the same
// snapshot; interfaces in other network namespaces are not included. Above and Below are the direct
// neighbours; Carriers are the cards below all layers.
type Layers struct {
	// Kind is physical, loopback, tun, tap, or the kernel's word: vlan, bond, bridge, veth, dummy,
	// vxlan, gre, macvlan, …; empty: software of unknown kind.
	Kind         string   `json:"kind,omitempty"`
	VLANID       int      `json:"vlan_id,omitempty"`
	VLANProtocol string   `json:"vlan_protocol,omitempty"` // 802.1Q or 802.1ad
	BondMode     string   `json:"bond_mode,omitempty"`     // balance-rr, active-backup, 802.3ad, …
	Peer         string   `json:"peer,omitempty"`          // the other end of a veth or netkit
	Below        []string `json:"below,omitempty"`         // a bond's members, the interface that carries a VLAN
	Above        []string `json:"above,omitempty"`
	// the physical cards that carry all its packets; none for a card itself
	Carriers []string `json:"carriers,omitempty"`
}

// Card holds the facts of hardware. Each part may be missing, because drivers choose what they
// implement.
type Card struct {
	FirmwareVersion string `json:"firmware_version,omitempty"`
	DriverVersion   string `json:"driver_version,omitempty"` // the kernel's release for drivers of the kernel's tree
	// PCIID is vendor:device as lspci -n prints it (sysfs-bus-pci: vendor, device); Subsystem
	// distinguishes the boards of one chip.
	PCIID     string `json:"pci_id,omitempty"`
	Subsystem string `json:"pci_subsystem_id,omitempty"`
	// VirtualFunction is the address of the physical function to which this one belongs (SR-IOV):
	// they share rates and queues.
	VirtualFunction string `json:"virtual_function_of,omitempty"`
	// The largest payload of a PCIe packet as set (MPS) and as the card supports it, and how much
	// it requests at once when it reads memory (MRRS). Only root may read them.
	PayloadBytes          int `json:"payload_bytes,omitempty"`
	PayloadSupportedBytes int `json:"payload_supported_bytes,omitempty"`
	ReadRequestBytes      int `json:"read_request_bytes,omitempty"`
	// enabled link states that save power and take microseconds to leave: l0s, l1, l1.1, …
	ASPM         []string        `json:"aspm,omitempty"`
	Pause        *Pause          `json:"pause,omitempty"`
	EEE          *EEE            `json:"eee,omitempty"`
	FEC          *FEC            `json:"fec,omitempty"`
	RSS          *RSS            `json:"rss,omitempty"`
	PrivateFlags map[string]bool `json:"private_flags,omitempty"` // the driver's own switches, by its names
	// as manufactured; a bond gives all of its cards one address
	PermanentMAC string     `json:"permanent_mac,omitempty"`
	Port         string     `json:"port,omitempty"` // twisted-pair, fibre, direct-attach, …
	Modes        *LinkModes `json:"link_modes,omitempty"`
	// of inspect with the name of the interface, or of a report (ethtool -m); absent: not asked for,
	// or none that answers
	Optic *optic.Module `json:"optic,omitempty"`
	// nil: the card or the kernel does not report bus errors
	AER *AER `json:"aer,omitempty"`
}

// LinkModes are speed, medium and duplex in the words of ethtool(8): "1000baseT/Full". They show
// why a link is slower than its card: one of the two ends does not advertise the mode.
type LinkModes struct {
	Autoneg    bool     `json:"autonegotiated"`
	Supported  []string `json:"supported,omitempty"`
	Advertised []string `json:"advertised,omitempty"`
	// of the other end; absent: no link, no negotiation, or not reported by the driver
	Partner []string `json:"partner,omitempty"`
	Lanes   int      `json:"lanes,omitempty"`
}

// AER holds the errors of the card's PCIe link since the kernel found it (Advanced Error
// Reporting). A correctable error costs a repetition, a nonfatal one the packet, a fatal one the
// link.
type AER struct {
	Correctable uint64            `json:"correctable_total"`
	NonFatal    uint64            `json:"nonfatal_total"`
	Fatal       uint64            `json:"fatal_total"`
	Kinds       map[string]uint64 `json:"kinds,omitempty"` // counts by the kernel's names: BadTLP, Timeout, …
}

// Pause is flow control by pause frames (IEEE 802.3 annex 31B) as configured; the negotiated result
// depends on the other end too.
type Pause struct {
	Autoneg bool `json:"autonegotiated"`
	Rx      bool `json:"rx"` // stops sending when asked to
	Tx      bool `json:"tx"` // asks the other end to stop
}

// EEE is Energy-Efficient Ethernet (IEEE 802.3az): the transmitter sleeps between packets and takes
// microseconds to wake.
type EEE struct {
	Enabled             bool    `json:"enabled"`
	Active              bool    `json:"active"` // both ends agreed
	TxLPI               bool    `json:"tx_low_power_idle"`
	TxLPITimerInSeconds float64 `json:"tx_low_power_idle_timer_seconds,omitempty"`
}

// FEC is forward error correction, in the words of ethtool(8): off, rs, baser, llrs. It costs some
// 100 to 250 ns of latency.
type FEC struct {
	Auto   bool     `json:"auto"`
	Modes  []string `json:"modes,omitempty"`
	Active string   `json:"active,omitempty"`
}

// RSS describes how a card spreads flows over its receive queues. Its table has a few hundred
// entries with the same few numbers; only the number of entries per queue matters.
type RSS struct {
	HashFunction string     `json:"hash_function,omitempty"`
	KeyBytes     int        `json:"key_bytes,omitempty"`
	Entries      int        `json:"indirection_entries,omitempty"`
	Shares       []RSSShare `json:"shares,omitempty"` // of the queues with entries, by number
}

// RSSShare is one receive queue's part of the table. Flows fall evenly on entries, so it is the
// queue's share of a large number of flows.
type RSSShare struct {
	Queue   uint32 `json:"queue"`
	Entries int    `json:"entries"`
}

// Interrupt is one interrupt of a card. Sets of CPUs are lists such as "0-3,8".
type Interrupt struct {
	Number int    `json:"irq"`
	Name   string `json:"name,omitempty"` // eth0-TxRx-3; empty: not in use now
	// Affinity is the requested set, EffectiveAffinity the interrupt controller's choice from it
	// (since Linux 4.15): mostly one CPU.
	Affinity          string     `json:"affinity_cpus,omitempty"`
	EffectiveAffinity string     `json:"effective_affinity_cpus,omitempty"`
	Counts            []CPUCount `json:"counts,omitempty"` // of the CPUs that served it since boot
	// PerSec is the rate over all CPUs while the host was watched; nil: not watched, since a rate
	// takes time.
	PerSec *float64 `json:"interrupts_per_second,omitempty"`
}

// AllCPUs is the number of all CPUs together, where a system counts them in one.
const AllCPUs = -1

// CPUCount is the count of one CPU since boot, or of [AllCPUs].
type CPUCount struct {
	CPU    int      `json:"cpu"`
	Total  uint64   `json:"interrupts_total"`
	PerSec *float64 `json:"interrupts_per_second,omitempty"` // as for the interrupt
}

// NAPI describes how an interface polls (Documentation/networking/napi.rst): after a poll that
// found little it may keep its interrupt off for a number of rounds and poll by timer, which trades
// latency for interrupts.
type NAPI struct {
	DeferHardIRQs          uint64  `json:"defer_hard_irqs"` // rounds; since Linux 5.9
	GROFlushTimeoutSeconds float64 `json:"gro_flush_timeout_seconds"`
	// polls in threads of its own instead of the softirq; since Linux 5.12
	Threaded bool `json:"threaded"`
}

// Symptom is one non-zero counter of an interface that counts packets lost, damaged or held back,
// with its driver's meaning. Counts are since the driver was loaded. Two counters may count the
// same packets, because NICs count one loss in several places.
type Symptom struct {
	Counter string `json:"counter"`     // as in /sys/class/net/X/statistics or ethtool -S
	Total   uint64 `json:"count_total"` // packets, or events where the meaning says so
	Class   string `json:"class"`       // ring-full, no-memory, bus, damaged, …; package nicstat
	Meaning string `json:"meaning"`
	Source  string `json:"source"` // the source of the meaning
}

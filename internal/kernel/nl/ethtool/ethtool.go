package ethtool

// Ring holds the current and the maximum number of descriptors of one direction.
type Ring struct{ Current, Max uint32 }

// Feature is one offload. Fixed means that the driver does not allow a change; such a feature is
// never a finding.
type Feature struct{ On, Fixed bool }

// Channels holds the queue counts of a NIC.
type Channels struct{ Rx, MaxRx, Tx, MaxTx, Other, MaxOther, Combined, MaxCombined uint32 }

// Pause is the flow control of a link (IEEE 802.3 annex 31B).
//
// With Autoneg, Rx and Tx are the offered values. The offers of both ends determine the effective
// ones (802.3 table 28B-3), and most drivers then report those instead.
type Pause struct {
	Autoneg bool // negotiated with the other end rather than forced
	Rx      bool // stops sending on request of the other end
	Tx      bool // requests the other end to stop
}

// EEE is Energy-Efficient Ethernet (IEEE 802.3az): the transmitter sleeps between packets and takes
// microseconds to wake.
type EEE struct {
	Enabled                bool   // wanted on this end
	Active                 bool   // both ends agreed: the link sleeps
	TxLPI                  bool   // the transmitter of this end enters low-power idle
	TxLPITimerMicroseconds uint32 // idle time before it does; 0: at once, or the driver does not report it
}

// FEC is the forward error correction of a link, in the terms of ethtool(8): off, rs (clause 91 and
// 108), baser (clause 74), llrs.
type FEC struct {
	Auto   bool     // the driver chooses, according to module and cable
	Modes  []string // configured, sorted; empty: none
	Active string   // in use; empty: no link, or not reported
}

// RSS describes how a NIC spreads flows over its receive queues: the hash of a packet's addresses
// selects an entry of the table, and the entry names the queue.
//
// The key is not included, because an attacker who knows it can send all flows to one queue.
type RSS struct {
	HashFunction string   // toeplitz, xor or crc32; empty: the driver does not report it
	KeyBytes     int      // length of the hash key
	Indirection  []uint32 // queue of each entry; empty: no table
}

// LinkInfo describes how the medium is attached.
type LinkInfo struct {
	Port        string // twisted-pair, aui, mii, fibre, bnc, direct-attach, none, other
	Transceiver string // internal or external; empty: not known
}

// DriverInfo identifies the driver of a link.
type DriverInfo struct{ Driver, Version, Firmware, Bus string }

// Wake is Wake-on-LAN: the bits of WAKE_… (linux/ethtool.h) that a device knows, and those that are
// on.
type Wake struct{ Supported, On uint32 }

// WakeMagicSecure is the bit of Wake that goes with a password, which this package does not read.
const WakeMagicSecure = 1 << 6

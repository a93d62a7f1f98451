package ethtool

// Ring holds current and maximum descriptors of one direction.
type Ring struct{ Current, Max uint32 }

// Feature is one offload; Fixed means the driver does not let it change.
//
// Fixed ones are no finding: nobody can change them.
type Feature struct{ On, Fixed bool }

// Channels are the queue counts of a card.
type Channels struct{ Rx, MaxRx, Tx, MaxTx, Other, MaxOther, Combined, MaxCombined uint32 }

// Pause is the flow control of a link (IEEE 802.3 annex 31B).
//
// With Autoneg, Rx and Tx say what is offered; what holds follows from the offers of both ends
// (802.3 table 28B-3), and most drivers then report that instead.
type Pause struct {
	Autoneg bool // negotiated with the other end rather than forced
	Rx      bool // stops sending when told to
	Tx      bool // tells the other end to stop
}

// EEE is Energy-Efficient Ethernet (IEEE 802.3az): the transmitter sleeps between packets and takes
// microseconds to wake.
type EEE struct {
	Enabled                bool   // wanted on this end
	Active                 bool   // both ends agreed: the link does sleep
	TxLPI                  bool   // the transmitter of this end enters low-power idle
	TxLPITimerMicroseconds uint32 // idle time before it does; 0: at once, or the driver does not tell
}

// FEC is the forward error correction of a link, in the words of ethtool(8): off, rs (clause 91 and
// 108), baser (clause 74), llrs.
type FEC struct {
	Auto   bool     // the driver chooses, by what module and cable want
	Modes  []string // configured, sorted; empty: none
	Active string   // in use; empty: no link, or not told
}

// RSS is how a card spreads flows over its receive queues: the hash of a packet's addresses picks
// an entry of the table, and that names the queue.
//
// The key itself is not kept: who knows it can aim all of his flows at one queue.
type RSS struct {
	HashFunction string   // toeplitz, xor or crc32; empty: the driver does not tell
	KeyBytes     int      // length of the hash key
	Indirection  []uint32 // queue of each entry; empty: no table
}

// LinkInfo tells how the medium is attached.
type LinkInfo struct {
	Port        string // twisted-pair, aui, mii, fibre, bnc, direct-attach, none, other
	Transceiver string // internal or external; empty: not known
}

// DriverInfo names the driver behind a link.
type DriverInfo struct{ Driver, Version, Firmware, Bus string }

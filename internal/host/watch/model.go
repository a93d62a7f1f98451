package watch

import (
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
)

// MaxDuration is the longest that [Host] watches. A verdict without a peer is promised within five
// seconds, and what happens less often than that is for a history to show.
const MaxDuration = 5 * time.Second

// Options say what to look at.
type Options struct {
	// Duration is how long [Host] watches: up to MaxDuration; 0: 3 s. Processor time has steps of
	// 10 ms, so that shares of less than a second are rough.
	Duration time.Duration
	// Sockets is how many listeners, how many connections and how many datagram sockets are kept;
	// 0: 32 of each, negative: no socket is asked for.
	Sockets int
}

// Span is what one host did over a time.
type Span struct {
	Seconds float64 `json:"interval_seconds"`
	// Counters are differences; gauges keep their later value ([host.Sub]).
	Counters   *host.Counters  `json:"counters"`
	CPUs       []CPU           `json:"cpus"`                 // by number, without the sum
	Interrupts []CardInterrupt `json:"interrupts,omitempty"` // of cards, those that came; by interface and number
	Drops      []drops.Drop    `json:"drops"`
	// Sockets is nil where they were not asked for or the kernel does not tell; Warnings then say
	// why.
	Sockets  *Sockets `json:"sockets,omitempty"`
	Warnings []string `json:"warnings,omitempty"` // what could not be read, one sentence each
}

// CPU is what one processor did: its time by class, and the network's share of its work.
type CPU struct {
	host.CPUTimes
	// NetRx and NetTx are the runs of the softirqs NET_RX and NET_TX: polls of cards and backlogs,
	// and completions of what was sent.
	NetRx uint64 `json:"net_rx_softirqs_total"`
	NetTx uint64 `json:"net_tx_softirqs_total"`
	// Packets is what it took in from cards and backlogs (softnet_stat, processed; segments that
	// GRO has merged count as one), Dropped what its backlog had no room for, Squeezed how often a
	// poll ended with work left, ReceivedRPS how often another CPU gave it work.
	Packets     uint64 `json:"packets_total"`
	Dropped     uint64 `json:"dropped_total"`
	Squeezed    uint64 `json:"time_squeezes_total"`
	ReceivedRPS uint64 `json:"received_rps_total"`
	Interrupts  uint64 `json:"card_interrupts_total"` // of network cards, all of them
}

// CardInterrupt is one interrupt of one card in a span: its totals and rates are those of the span,
// and Counts has the CPUs that served it.
type CardInterrupt struct {
	Interface string `json:"interface"`
	Queue     string `json:"queue,omitempty"` // rx-3, tx-3, or 3 of both directions; empty: of no queue, or the driver does not say
	host.Interrupt
	Total uint64 `json:"interrupts_total"`
}

// Sockets are the sockets of one network namespace that may hold something up. In a span totals are
// those of the span, queues and memory are as at its end.
type Sockets struct {
	Listeners   []Listener   `json:"listeners"`        // TCP; nearest to their limit first, those with drops before all others
	Connections []Connection `json:"connections"`      // TCP; those that moved data or hold some, the most bytes first
	Datagrams   []Datagram   `json:"datagram_sockets"` // UDP; those that dropped or hold packets, most drops first, then the fullest
	// Destinations are those of outgoing connections that take most local ports, counted where
	// ports may run short; nil: there are plenty, or nobody tells.
	Destinations []Destination `json:"destinations,omitempty"`
	// Seconds is between the readings of the sockets, which are outside of those of the counters.
	Seconds float64 `json:"interval_seconds"`
	// How many of each kind there were, told or not. Cut: there were more than are looked at, so
	// that these are a sample.
	ListenersSeen   int  `json:"listeners_seen"`
	ConnectionsSeen int  `json:"connections_seen"`
	DatagramsSeen   int  `json:"datagram_sockets_seen"`
	Cut             bool `json:"cut,omitempty"`
}

// Listener is a TCP socket that waits for connections.
type Listener struct {
	Cookie uint64         `json:"cookie"` // the kernel's number of the socket, good until the host restarts
	Local  netip.AddrPort `json:"local"`
	// Queued connections wait for the program to accept them; the kernel refuses more when there
	// are more than Limit, what the program asked for in listen(2), bounded by net.core.somaxconn.
	Queued int `json:"queued_connections"`
	Limit  int `json:"limit_connections"`
	// Drops are the handshakes that it refused or forgot, for want of room mostly (since Linux
	// 4.7).
	Drops uint64 `json:"drops_total"`
}

// Connection is one TCP connection.
type Connection struct {
	Cookie uint64         `json:"cookie"`
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	// New: it was not there at the first reading, so its totals are since it was made.
	New bool `json:"new,omitempty"`
	// TCP says what it did; Sender: more bytes went than came. Means and the largest window are of
	// the last reading, and what the program set for its unsent data (TCP_NOTSENT_LOWAT) is not
	// known.
	TCP tcpinfo.TCPInfo `json:"tcp"`
	// UnreadBytes arrived and wait for the program (Recv-Q of ss); UnackedBytes are written and not
	// acknowledged (Send-Q), UnsentBytes those of them not yet sent.
	UnreadBytes  int64 `json:"unread_bytes"`
	UnackedBytes int64 `json:"unacked_bytes"`
	UnsentBytes  int64 `json:"unsent_bytes"`
	// IdleSeconds is since data last came or went.
	IdleSeconds float64 `json:"idle_seconds"`
	Timeouts    uint64  `json:"timeouts_total"` // retransmission timeouts; since Linux 6.7
	Memory      Memory  `json:"memory"`
}

// Datagram is one UDP socket.
type Datagram struct {
	Cookie uint64         `json:"cookie"`
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote,omitzero"` // of a connected one
	New    bool           `json:"new,omitempty"`
	Memory Memory         `json:"memory"`
}

// Memory is what a socket holds and may hold (SK_MEMINFO of sock_diag(7), skmem of ss(8)). Memory
// is more than payload: each packet brings its descriptor and the room that its buffer was rounded
// up to.
type Memory struct {
	ReceiveBytes      int64  `json:"receive_bytes"`       // r: waits to be read
	ReceiveLimitBytes int64  `json:"receive_limit_bytes"` // rb: SO_RCVBUF as the kernel keeps it
	SendBytes         int64  `json:"send_bytes"`          // t: handed down to the qdisc or the card and not yet sent
	SendLimitBytes    int64  `json:"send_limit_bytes"`    // tb: SO_SNDBUF
	ForwardBytes      int64  `json:"forward_bytes"`       // f: reserved for it and not used
	QueuedBytes       int64  `json:"queued_bytes"`        // w: waits to be sent or acknowledged
	OptionBytes       int64  `json:"option_bytes"`        // o
	BacklogBytes      int64  `json:"backlog_bytes"`       // bl: came while the program held the socket
	Drops             uint64 `json:"drops_total"`         // d: packets that it had no room for; since Linux 4.7, of TCP also those out of its window
}

package watch

import (
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
)

// MaxDuration is the longest time that [Host] watches. A verdict without a peer is promised within
// five seconds; a history shows rarer events.
const MaxDuration = 5 * time.Second

// Options select what to observe.
type Options struct {
	// Duration is how long [Host] watches: up to MaxDuration; 0: 3 s. CPU time has steps of 10 ms,
	// so shares of less than a second are rough.
	Duration time.Duration
	// Sockets is how many listeners, connections and datagram sockets are kept; 0: 32 of each,
	// negative: no sockets are read.
	Sockets int
}

// Span is the activity of one host over a time.
type Span struct {
	Seconds float64 `json:"interval_seconds"`
	// Counters are differences; gauges keep their later value ([host.Sub]).
	Counters   *host.Counters  `json:"counters"`
	CPUs       []CPU           `json:"cpus"`                 // by number, without the sum
	Interrupts []CardInterrupt `json:"interrupts,omitempty"` // those of cards that occurred; by interface and number
	Drops      []drops.Drop    `json:"drops"`
	// Sockets is nil if they were not requested or the kernel does not report them; then Warnings
	// has the reason.
	Sockets  *Sockets `json:"sockets,omitempty"`
	Warnings []string `json:"warnings,omitempty"` // what could not be read, one sentence each
}

// CPU is the activity of one processor: its time by class, and the network's share of its work.
type CPU struct {
	host.CPUTimes
	// NetRx and NetTx are the runs of the softirqs NET_RX and NET_TX: polls of NICs and backlogs,
	// and completions of transmissions.
	NetRx uint64 `json:"net_rx_softirqs_total"`
	NetTx uint64 `json:"net_tx_softirqs_total"`
	// Packets were received from NICs and backlogs (softnet_stat, processed; segments that GRO
	// merged count as one). Dropped is what the backlog had no room for, Squeezed how often a poll
	// ended with work left, ReceivedRPS how often another CPU gave it work.
	Packets     uint64 `json:"packets_total"`
	Dropped     uint64 `json:"dropped_total"`
	Squeezed    uint64 `json:"time_squeezes_total"`
	ReceivedRPS uint64 `json:"received_rps_total"`
	Interrupts  uint64 `json:"card_interrupts_total"` // of all NICs
}

// CardInterrupt is one interrupt of one card in a span: its totals and rates are those of the span,
// and Counts has the CPUs that served it.
type CardInterrupt struct {
	Interface string `json:"interface"`
	Queue     string `json:"queue,omitempty"` // rx-3, tx-3, or 3 for both directions; empty: of no queue, or not known
	host.Interrupt
	Total uint64 `json:"interrupts_total"`
}

// Sockets are the sockets of one network namespace that may limit the speed. In a span, totals are
// those of the span; queues and memory are as at its end.
type Sockets struct {
	Listeners   []Listener   `json:"listeners"`   // TCP; those with drops first, then those nearest to their limit
	Connections []Connection `json:"connections"` // TCP; those that moved or hold data, the most bytes first
	// UDP; those that dropped or hold packets, most drops first, then the fullest
	Datagrams []Datagram `json:"datagram_sockets"`
	// Destinations are those of outgoing connections that use the most local ports, counted if
	// ports may run short; nil: ports are plentiful, or not known.
	Destinations []Destination `json:"destinations,omitempty"`
	// Seconds is the time between the readings of the sockets, which enclose those of the counters.
	Seconds float64 `json:"interval_seconds"`
	// How many of each kind there were, kept or not. Cut: there were more than are read, so these
	// are a sample.
	ListenersSeen   int  `json:"listeners_seen"`
	ConnectionsSeen int  `json:"connections_seen"`
	DatagramsSeen   int  `json:"datagram_sockets_seen"`
	Cut             bool `json:"cut,omitempty"`
}

// Listener is a TCP socket that waits for connections.
type Listener struct {
	Cookie uint64         `json:"cookie"` // the kernel's number of the socket, good until the host restarts
	Local  netip.AddrPort `json:"local"`
	// Queued connections wait until the program accepts them; the kernel refuses more if there are
	// more than Limit: the program's argument of listen(2), bounded by net.core.somaxconn.
	Queued int `json:"queued_connections"`
	Limit  int `json:"limit_connections"`
	// Drops are the handshakes that it refused or discarded, mostly for lack of room (since Linux
	// 4.7).
	Drops uint64 `json:"drops_total"`
}

// Connection is one TCP connection.
type Connection struct {
	Cookie uint64         `json:"cookie"`
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	// New: it did not exist at the first reading, so its totals are since it was created.
	New bool `json:"new,omitempty"`
	// TCP is its activity; Sender: it sent more bytes than it received. Means and the largest
	// window are of the last reading. The program's limit for unsent data (TCP_NOTSENT_LOWAT) is
	// not known.
	TCP tcpinfo.TCPInfo `json:"tcp"`
	// UnreadBytes arrived and wait for the program (Recv-Q of ss); UnackedBytes are written and not
	// acknowledged (Send-Q), UnsentBytes the part of them that is not yet sent.
	UnreadBytes  int64 `json:"unread_bytes"`
	UnackedBytes int64 `json:"unacked_bytes"`
	UnsentBytes  int64 `json:"unsent_bytes"`
	// IdleSeconds is the time since data last arrived or left.
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

// Memory is what a socket holds and may hold (SK_MEMINFO of sock_diag(7), skmem of ss(8)). It is
// more than payload: each packet adds its descriptor and the rounding of its buffer.
type Memory struct {
	ReceiveBytes      int64 `json:"receive_bytes"`       // r: waits to be read
	ReceiveLimitBytes int64 `json:"receive_limit_bytes"` // rb: SO_RCVBUF as the kernel keeps it
	SendBytes         int64 `json:"send_bytes"`          // t: passed to the qdisc or the NIC and not yet sent
	SendLimitBytes    int64 `json:"send_limit_bytes"`    // tb: SO_SNDBUF
	ForwardBytes      int64 `json:"forward_bytes"`       // f: reserved and not used
	QueuedBytes       int64 `json:"queued_bytes"`        // w: waits to be sent or acknowledged
	OptionBytes       int64 `json:"option_bytes"`        // o
	BacklogBytes      int64 `json:"backlog_bytes"`       // bl: arrived while the program held the socket
	// d: packets without room; since Linux 4.7, for TCP also those out of its window
	Drops uint64 `json:"drops_total"`
}

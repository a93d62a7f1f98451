package talkers

import (
	"cmp"
	"errors"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/kernel/nl/sockdiag"
)

// The bounds of one reading, as in package watch: a connection with its tcp_info takes some 5 µs.
const (
	maxConnections = 1 << 16
	listTime       = 150 * time.Millisecond
)

// Length of struct tcp_info that ends with tcpi_bytes_received.
const bytesReceivedEnd = 136

// Process is a program that holds sockets.
type Process struct {
	PID    int    `json:"pid,omitempty"`     // absent: not known, or none holds the socket
	Name   string `json:"process,omitempty"` // at most 15 bytes, as the kernel keeps it
	Cgroup string `json:"cgroup,omitempty"`  // path of the control group; absent: the root, or not known
}

// Traffic is what moved in one interval.
type Traffic struct {
	Send    float64 `json:"send_bits_per_second"` // acknowledged payload
	Receive float64 `json:"receive_bits_per_second"`
	Again   float64 `json:"retransmit_bits_per_second"` // payload that was sent again
}

func (t Traffic) total() float64 { return t.Send + t.Receive + t.Again }

// Connection is one connection that moved bytes.
type Connection struct {
	Process
	Local  string `json:"local_address"` // with its port
	Remote string `json:"remote_address"`
	Traffic
	RTT        float64 `json:"rtt_seconds"`      // smoothed
	SendQueue  int64   `json:"send_queue_bytes"` // written and not acknowledged
	Congestion string  `json:"congestion_control,omitempty"`
}

// Total is what one process moved.
type Total struct {
	Process
	Connections int `json:"connections_total"` // that moved bytes
	Traffic
}

// Reading is what moved between two lists of the connections.
type Reading struct {
	Connections []Connection // that moved bytes, the busiest first
	Warnings    []string     // what could not be read, one sentence each
}

// Processes returns the sums of each process, the busiest first.
func (r Reading) Processes() []Total {
	at := map[Process]int{}
	all := []Total{}
	for _, c := range r.Connections {
		i, known := at[c.Process]
		if !known {
			i, at[c.Process] = len(all), len(all)
			all = append(all, Total{Process: c.Process})
		}
		t := &all[i]
		t.Connections++
		t.Send, t.Receive, t.Again = t.Send+c.Send, t.Receive+c.Receive, t.Again+c.Again
	}
	sorting.StableFunc(all, func(a, b Total) int { return cmp.Compare(b.total(), a.total()) })
	return all
}

// mark is what a connection has moved until a reading.
type mark struct{ acked, received, again uint64 }

// Meter turns successive lists of the connections into rates. One goroutine uses it. The zero value
// reads the network namespace of the calling thread.
type Meter struct {
	at     time.Time
	before map[uint64]mark    // by cookie
	owners map[uint32]Process // by inode, of sockets that were looked for
	hidden bool               // the last look met processes that this user may not read

	list func(visit func(*sockdiag.Socket) bool) error // nil: the kernel
	find func(wanted map[uint32]bool) (map[uint32]Process, bool, error)
	now  func() time.Time
}

// listing returns the kernel's list of connections that can carry data, cut off at a limit of time;
// 0: none.
func listing(limit time.Duration) func(visit func(*sockdiag.Socket) bool) error {
	return func(visit func(*sockdiag.Socket) bool) error {
		return sockdiag.Each(sockdiag.Query{Protocol: sockdiag.TCP, TCPInfo: true, Limit: limit,
			States: []sockdiag.State{sockdiag.Established, sockdiag.FinWait1, sockdiag.CloseWait}}, visit)
	}
}

// Take lists the connections, and returns what has moved since the previous list. The first list
// has no rates, so its reading is empty. The error is errors.ErrUnsupported where the kernel has no
// sock_diag.
func (m *Meter) Take() (Reading, error) {
	if m.list == nil {
		m.list, m.find, m.now = listing(listTime), find, time.Now
	}
	r := Reading{Connections: []Connection{}}
	after := make(map[uint64]mark, len(m.before))
	inodes, old := map[uint32]bool{}, false
	var moved []uint32 // the inode of each connection of the reading
	at := m.now()
	seconds := at.Sub(m.at).Seconds()
	err := m.list(func(s *sockdiag.Socket) bool {
		if !s.Info.Has(bytesReceivedEnd) {
			old = true
			return false
		}
		now := mark{s.Info.BytesAcked, s.Info.BytesReceived, s.Info.BytesRetrans}
		was := m.before[s.Cookie] // nothing, for one that came since: it moved all its bytes in between
		after[s.Cookie] = now
		if m.before != nil && seconds > 0 && now != was {
			r.Connections = append(r.Connections, connection(s, was, now, seconds))
			moved = append(moved, s.Inode)
			if _, looked := m.owners[s.Inode]; !looked && s.Inode != 0 {
				inodes[s.Inode] = true
			}
		}
		return len(after) < maxConnections
	})
	switch {
	case old:
		return r, errors.New("list tcp connections: this kernel counts no bytes of a connection (since Linux 4.1)")
	case errors.Is(err, sockdiag.ErrLimit), err == nil && len(after) == maxConnections:
		r.Warnings = append(r.Warnings, "only a part of the connections: the host has too many for one reading")
	case err != nil:
		return r, err
	}
	m.at, m.before = at, after
	if len(inodes) > 0 {
		m.look(inodes)
	}
	for i := range r.Connections {
		r.Connections[i].Process = m.owners[moved[i]]
	}
	if m.hidden {
		r.Warnings = append(r.Warnings, "the names of other users' processes: only root may read them")
	}
	sorting.StableFunc(r.Connections, func(a, b Connection) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), cmp.Compare(a.Local, b.Local), cmp.Compare(a.Remote, b.Remote))
	})
	return r, nil
}

func connection(s *sockdiag.Socket, was, now mark, seconds float64) Connection {
	bits := func(was, now uint64) float64 { return 8 * float64(now-min(was, now)) / seconds }
	return Connection{
		Local: s.Local.String(), Remote: s.Remote.String(), Congestion: s.Congestion, SendQueue: int64(s.SendQueue),
		RTT: float64(s.Info.RTTMicros) / 1e6,
		Traffic: Traffic{Send: bits(was.acked, now.acked), Receive: bits(was.received, now.received),
			Again: bits(was.again, now.again)},
	}
}

// look finds the processes of sockets. One that no process holds is remembered as well, so that it
// is not looked for again.
func (m *Meter) look(inodes map[uint32]bool) {
	found, hidden, err := m.find(inodes)
	m.hidden = hidden || err != nil
	// A host opens sockets for as long as it runs; those that moved nothing lately are looked for
	// again.
	if m.owners == nil || len(m.owners) > maxConnections {
		m.owners = map[uint32]Process{}
	}
	for inode := range inodes {
		m.owners[inode] = found[inode]
	}
}

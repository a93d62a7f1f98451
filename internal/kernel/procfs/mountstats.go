package procfs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// NFSMount is one NFS mount of /proc/PID/mountstats. All counters are since it was mounted.
type NFSMount struct {
	Source, Path, Type string
	Options            []string // negotiated, as rsize=1048576
	Age                time.Duration
	// ReadBytes and WriteBytes are those of programs, through the page cache or directly; the server
	// ones are those of READ and WRITE calls.
	ReadBytes, WriteBytes             uint64
	DirectReadBytes, DirectWriteBytes uint64
	ServerReadBytes, ServerWriteBytes uint64
	Transports                        []NFSTransport
	Operations                        []NFSOperation
}

// NFSTransport is one connection to the server, or one UDP socket.
type NFSTransport struct {
	Protocol           string // tcp, udp, rdma
	Connects           uint64
	Sends, Receives    uint64
	BadIDs             uint64 // answers to no request: duplicates after a retransmission
	InFlightSum        uint64 // requests in flight, summed over the sends
	BacklogSum         uint64 // requests that waited for a slot, summed over the sends
	MaxSlots           uint64 // most slots in use at once; 0: unknown, before Linux 3.2
	SendingSum         uint64
	PendingSum         uint64
	SlotsKnown         bool
	IdleTime           time.Duration
	ConnectTimeJiffies uint64
}

// NFSOperation is one procedure of the protocol.
type NFSOperation struct {
	Name                    string
	Requests, Transmissions uint64
	Timeouts                uint64 // major ones
	SentBytes               uint64
	ReceivedBytes           uint64
	Queue, RoundTrip        time.Duration // before the send, and from the send to the answer
	Execution               time.Duration // from the start of the call to its end
	Errors                  uint64        // since Linux 5.3
	// Wrapped reports that the kernel subtracted more than it had added: one of the times is not
	// usable, and is 0.
	Wrapped bool
}

// ParseMountStats reads the NFS mounts of /proc/PID/mountstats (nfs_show_stats in fs/nfs/super.c,
// xprt print_stats and rpc_clnt_show_stats in net/sunrpc). It omits mounts of other file systems. A
// line that is not understood ends only its own value: kernels append columns and lines.
func ParseMountStats(b []byte) ([]NFSMount, error) {
	var all []NFSMount
	var m *NFSMount
	operations := false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if f[0] == "device" {
			m, operations = nil, false
			// device SOURCE mounted on PATH with fstype TYPE statvers=1.1
			if len(f) < 8 || f[2] != "mounted" || f[5] != "with" {
				continue // "no device mounted on …", and names with line ends
			}
			if f[7] != "nfs" && f[7] != "nfs4" {
				continue
			}
			all = append(all, NFSMount{Source: unescape(f[1]), Path: unescape(f[4]), Type: f[7]})
			m = &all[len(all)-1]
			continue
		}
		if m == nil {
			continue
		}
		switch name, ok := strings.CutSuffix(f[0], ":"); {
		case f[0] == "per-op":
			operations = true
		case operations && ok:
			op, err := parseNFSOperation(name, f[1:])
			if err != nil {
				return all, fmt.Errorf("%s of %s: %w", name, m.Path, err)
			}
			m.Operations = append(m.Operations, op)
		case f[0] == "opts:":
			m.Options = append(m.Options, splitOptions(f[1:])...)
		case f[0] == "age:" && len(f) > 1:
			if n, err := strconv.ParseUint(f[1], 10, 32); err == nil {
				m.Age = time.Duration(n) * time.Second
			}
		case f[0] == "bytes:":
			n, _ := numbers(f[1:], 6)
			m.ReadBytes, m.WriteBytes, m.DirectReadBytes, m.DirectWriteBytes = n[0], n[1], n[2], n[3]
			m.ServerReadBytes, m.ServerWriteBytes = n[4], n[5]
		case f[0] == "xprt:" && len(f) > 1:
			m.Transports = append(m.Transports, parseTransport(f[1], f[2:]))
		case !ok && len(m.Options) > 0 && len(m.Transports) == 0 && strings.Contains(line, "="):
			// A recorded file may have long options folded.
			m.Options = append(m.Options, splitOptions(f)...)
		}
	}
	return all, nil
}

func splitOptions(fields []string) []string {
	var all []string
	for option := range strings.SplitSeq(strings.Join(fields, ""), ",") {
		if option != "" {
			all = append(all, option)
		}
	}
	return all
}

// numbers reads up to n counters; missing ones are 0, and the second result is how many there were.
func numbers(fields []string, n int) ([]uint64, int) {
	out := make([]uint64, n)
	for i := range min(n, len(fields)) {
		v, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return out, i
		}
		out[i] = v
	}
	return out, min(n, len(fields))
}

// parseTransport reads the columns of one transport: those of UDP lack the three about connections
// (xs_udp_print_stats, xs_tcp_print_stats, xprt_rdma_print_stats).
func parseTransport(protocol string, fields []string) NFSTransport {
	t := NFSTransport{Protocol: protocol}
	const head = 2 // port and binds
	if protocol == "udp" {
		n, known := numbers(fields, head+8)
		t.Sends, t.Receives, t.BadIDs, t.InFlightSum, t.BacklogSum = n[2], n[3], n[4], n[5], n[6]
		t.MaxSlots, t.SendingSum, t.PendingSum, t.SlotsKnown = n[7], n[8], n[9], known == head+8
		return t
	}
	n, known := numbers(fields, head+11)
	t.Connects, t.ConnectTimeJiffies, t.IdleTime = n[2], n[3], time.Duration(min(n[4], 1<<32))*time.Second
	t.Sends, t.Receives, t.BadIDs, t.InFlightSum, t.BacklogSum = n[5], n[6], n[7], n[8], n[9]
	if protocol != "rdma" { // whose further columns count chunks
		t.MaxSlots, t.SendingSum, t.PendingSum, t.SlotsKnown = n[10], n[11], n[12], known == head+11
	}
	return t
}

// parseNFSOperation reads the counters of a procedure: eight, and since Linux 5.3 the errors.
func parseNFSOperation(name string, fields []string) (NFSOperation, error) {
	op := NFSOperation{Name: name}
	n, known := numbers(fields, 9)
	if known < 8 {
		// A number that no counter of 64 bits has: the rest of the line is as unusable.
		if len(fields) < 8 {
			return op, fmt.Errorf("%d columns: %w", len(fields), ErrFormat)
		}
		op.Wrapped = true
	}
	op.Requests, op.Transmissions, op.Timeouts, op.SentBytes, op.ReceivedBytes = n[0], n[1], n[2], n[3], n[4]
	for i, into := range []*time.Duration{&op.Queue, &op.RoundTrip, &op.Execution} {
		// A clock step backwards wraps a sum (seen as 2^64 minus some days).
		if ms := n[5+i]; ms < 1<<43 {
			*into = time.Duration(ms) * time.Millisecond
		} else {
			op.Wrapped = true
		}
	}
	op.Errors = n[8]
	return op, nil
}

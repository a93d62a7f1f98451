package nfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Station is where a call waits.
type Station string

// The stations, in the order of a call.
const (
	Slots   Station = "slots"   // this host: for a slot, or for the transport
	Network Station = "network" // the way to the server and back
	Server  Station = "server"
	// Remote is the way or the server, where no small call separates the two.
	Remote  Station = "network-or-server"
	Client  Station = "client" // this host: until the answer is processed
	Nowhere Station = "nowhere"
)

// Mount is one NFS mount.
type Mount struct {
	Source     string   `json:"source"`
	Path       string   `json:"path"`
	Type       string   `json:"type"`
	Options    []string `json:"options"`
	AgeSeconds float64  `json:"age_seconds"`
	// SpanSeconds is the time that the counters cover: since the mount, or of the reading.
	SpanSeconds   float64     `json:"span_seconds"`
	ReadSize      int64       `json:"rsize_bytes,omitempty"`
	WriteSize     int64       `json:"wsize_bytes,omitempty"`
	Connections   int         `json:"nconnect"`
	ReadAhead     int64       `json:"read_ahead_bytes,omitempty"`
	Protocol      string      `json:"protocol,omitempty"`
	Waits         Station     `json:"waits"`
	Because       []string    `json:"because"`
	Operations    []Operation `json:"operations"`
	Transports    []Transport `json:"transports"`
	ReadBytes     uint64      `json:"program_read_bytes"`
	WriteBytes    uint64      `json:"program_write_bytes"`
	ServerRead    uint64      `json:"server_read_bytes"`
	ServerWritten uint64      `json:"server_write_bytes"`
	Warnings      []string    `json:"warnings,omitempty"`
}

// Operation is one procedure, with the means of its calls.
type Operation struct {
	Operation       string  `json:"operation"`
	Requests        uint64  `json:"requests_total"`
	Retransmissions uint64  `json:"retransmits_total"`
	Timeouts        uint64  `json:"timeouts_total"`
	Errors          uint64  `json:"errors_total"`
	BytesPerCall    float64 `json:"mean_bytes"` // both directions
	QueueSeconds    float64 `json:"queue_mean_seconds"`
	RoundTrip       float64 `json:"round_trip_mean_seconds"`
	Execution       float64 `json:"execution_mean_seconds"`
	Waits           Station `json:"waits"`
	Unusable        bool    `json:"unusable,omitempty"` // the kernel let a counter wrap
}

// Transport is one connection.
type Transport struct {
	Protocol string  `json:"protocol"`
	Connects uint64  `json:"connects_total"`
	Sends    uint64  `json:"sends_total"`
	BadIDs   uint64  `json:"bad_ids_total"`
	InFlight float64 `json:"in_flight_mean"`
	Backlog  float64 `json:"backlog_mean"`
	SlotsMax uint64  `json:"slots_max,omitempty"`
}

// ErrNoNFS reports a host without the kernel's NFS client.
var ErrNoNFS = errors.New("this kernel has no NFS client loaded")

// Read returns the counters of every NFS mount of a host. A host without any has an empty list; the
// error is [ErrNoNFS] where the kernel cannot mount NFS either.
func Read(tree *hostfs.Tree) ([]procfs.NFSMount, error) {
	b, err := tree.Read("proc/self/mountstats")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all, err := procfs.ParseMountStats(b)
	if err != nil {
		return nil, fmt.Errorf("read mountstats: %w", err)
	}
	if len(all) == 0 && !slices.ContainsFunc(strings.Fields(tree.Optional("proc/filesystems")),
		func(word string) bool { return word == "nfs" || word == "nfs4" }) {
		return nil, ErrNoNFS
	}
	return all, nil
}

// Since returns what happened between two readings of one mount. A mount that was made anew in
// between is returned as it is.
func Since(before, after procfs.NFSMount) procfs.NFSMount {
	if before.Age > after.Age || before.Source != after.Source {
		return after
	}
	d := after
	d.ReadBytes, d.WriteBytes = after.ReadBytes-before.ReadBytes, after.WriteBytes-before.WriteBytes
	d.ServerReadBytes -= before.ServerReadBytes
	d.ServerWriteBytes -= before.ServerWriteBytes
	d.Operations = slices.Clone(after.Operations)
	for i, op := range d.Operations {
		j := slices.IndexFunc(before.Operations, func(o procfs.NFSOperation) bool { return o.Name == op.Name })
		if j < 0 {
			continue
		}
		o := before.Operations[j]
		op.Requests -= o.Requests
		op.Transmissions -= o.Transmissions
		op.Timeouts -= o.Timeouts
		op.SentBytes -= o.SentBytes
		op.ReceivedBytes -= o.ReceivedBytes
		op.Errors -= o.Errors
		op.Queue, op.RoundTrip, op.Execution = op.Queue-o.Queue, op.RoundTrip-o.RoundTrip, op.Execution-o.Execution
		// Two readings of counters that wrapped before differ by what happened between them, but the
		// parser has zeroed them.
		op.Wrapped = op.Wrapped || o.Wrapped
		d.Operations[i] = op
	}
	d.Transports = slices.Clone(after.Transports)
	for i, t := range d.Transports {
		if i >= len(before.Transports) || before.Transports[i].Sends > t.Sends {
			continue
		}
		o := before.Transports[i]
		t.Connects, t.Sends, t.BadIDs = t.Connects-o.Connects, t.Sends-o.Sends, t.BadIDs-o.BadIDs
		t.InFlightSum -= o.InFlightSum
		t.BacklogSum -= o.BacklogSum
		t.SendingSum -= o.SendingSum
		d.Transports[i] = t
	}
	return d
}

// small are the procedures that a server answers from memory, with small requests and answers.
var small = []string{"GETATTR", "ACCESS", "LOOKUP", "NULL", "RENEW", "SEQUENCE", "FSINFO", "PATHCONF", "SERVER_CAPS"}

// The kernel's times are whole milliseconds: a mean needs many calls, or a few long ones.
const (
	enough = 20
	few    = 2
	long   = 10 * time.Millisecond
	grain  = time.Millisecond
)

// Judge makes a Mount of counters over a span. The tree gives what surrounds the mount: fstab and
// read-ahead.
func Judge(tree *hostfs.Tree, c procfs.NFSMount, span time.Duration) Mount {
	return judge(tree, c, span, nearest(c.Operations))
}

// JudgeSince makes a Mount of what happened between two readings. Where that has no small calls,
// those since the mount show the way to the server.
func JudgeSince(tree *hostfs.Tree, before, after procfs.NFSMount, span time.Duration) Mount {
	c := Since(before, after)
	w := nearest(c.Operations)
	if !w.known {
		if whole := nearest(after.Operations); whole.known || w.each < 0 {
			w = whole
		}
	}
	return judge(tree, c, span, w)
}

func judge(tree *hostfs.Tree, c procfs.NFSMount, span time.Duration, w way) Mount {
	m := Mount{Source: c.Source, Path: c.Path, Type: c.Type, Options: c.Options, AgeSeconds: c.Age.Seconds(),
		SpanSeconds: span.Seconds(), Connections: max(1, len(c.Transports)), ReadBytes: c.ReadBytes,
		WriteBytes: c.WriteBytes, ServerRead: c.ServerReadBytes, ServerWritten: c.ServerWriteBytes, Waits: Nowhere,
		Operations: []Operation{}, Transports: []Transport{}}
	m.ReadSize, m.WriteSize = m.number("rsize"), m.number("wsize")
	m.Protocol, _ = m.option("proto")
	w.whole = m.Protocol == "udp" || strings.HasPrefix(m.Protocol, "rdma")
	spent := make(map[Station]time.Duration)
	for _, o := range c.Operations {
		if o.Requests == 0 && !o.Wrapped {
			continue
		}
		m.Operations = append(m.Operations, m.operation(o, w, spent))
	}
	sorting.StableFunc(m.Operations, func(a, b Operation) int {
		return cmp.Compare(b.Execution*float64(b.Requests), a.Execution*float64(a.Requests))
	})
	for _, t := range c.Transports {
		m.Transports = append(m.Transports, transport(t))
	}
	m.station(spent, w)
	m.slots(tree, c.Transports)
	m.transfers()
	m.asked(tree)
	m.readAhead(tree)
	return m
}

// way is the round trip of the network.
type way struct {
	each  time.Duration // known: of each call; else at most this, and negative without any bound
	known bool
	whole bool // a call of any size is on the way at once: RDMA and UDP have no slow start
}

// part returns what calls of a mean size took on the way, of their round trips: known, or possible.
func (w way) part(calls uint64, bytes float64, total time.Duration) time.Duration {
	if w.each < 0 {
		return total
	}
	n := 1
	if !w.whole {
		n = trips(bytes)
	}
	return min(total, w.each*time.Duration(n)*time.Duration(min(calls, 1<<32)))
}

// firstFlight is what a connection that was idle carries in its first round trip: ten segments of
// 1448 bytes (RFC 6928). Each further one carries twice as much (RFC 5681, 3.1).
const firstFlight = 14480

// trips returns how many round trips a call may need.
func trips(bytes float64) int {
	n := 1
	for carried := float64(firstFlight); carried < bytes; carried = 2*carried + firstFlight {
		n++
	}
	return n
}

// nearest estimates the round trip of the network: the smallest mean of the small procedures.
func nearest(all []procfs.NFSOperation) way {
	w := way{each: -1}
	for _, o := range all {
		if !slices.Contains(small, o.Name) || o.Requests == 0 || o.Wrapped {
			continue
		}
		mean := o.RoundTrip / time.Duration(o.Requests)
		switch known := o.Requests >= enough || o.Requests >= few && mean >= long; {
		case known && (!w.known || mean < w.each):
			w = way{each: mean, known: true}
		case !known && !w.known && (w.each < 0 || mean+grain < w.each):
			w.each = mean + grain
		}
	}
	return w
}

// operation makes the means of a procedure, and adds its times to those of each station.
func (m *Mount) operation(o procfs.NFSOperation, w way, spent map[Station]time.Duration) Operation {
	op := Operation{Operation: o.Name, Requests: o.Requests, Timeouts: o.Timeouts, Errors: o.Errors, Waits: Nowhere,
		Unusable: o.Wrapped}
	if o.Transmissions > o.Requests {
		op.Retransmissions = o.Transmissions - o.Requests
	}
	if o.Wrapped || o.Requests == 0 {
		m.Warnings = append(m.Warnings, o.Name+": the kernel let a counter wrap; its times are left out")
		return op
	}
	n := float64(o.Requests)
	op.BytesPerCall = float64(o.SentBytes+o.ReceivedBytes) / n
	op.QueueSeconds, op.RoundTrip, op.Execution = o.Queue.Seconds()/n, o.RoundTrip.Seconds()/n, o.Execution.Seconds()/n
	parts := map[Station]time.Duration{Slots: o.Queue}
	onTheWay := w.part(o.Requests, op.BytesPerCall, o.RoundTrip)
	if w.known {
		parts[Network] = onTheWay
	} else {
		parts[Remote] = onTheWay
	}
	parts[Server] = o.RoundTrip - onTheWay
	parts[Client] = max(0, o.Execution-o.Queue-o.RoundTrip)
	op.Waits = longest(parts)
	for s, d := range parts {
		spent[s] += d
	}
	return op
}

// longest returns the station with the most time.
func longest(parts map[Station]time.Duration) Station {
	best, most := Nowhere, time.Duration(0)
	for _, s := range []Station{Slots, Network, Server, Remote, Client} {
		if parts[s] > most {
			best, most = s, parts[s]
		}
	}
	return best
}

func transport(t procfs.NFSTransport) Transport {
	x := Transport{Protocol: t.Protocol, Connects: t.Connects, Sends: t.Sends, BadIDs: t.BadIDs, SlotsMax: t.MaxSlots}
	if t.Sends > 0 {
		x.InFlight, x.Backlog = float64(t.InFlightSum)/float64(t.Sends), float64(t.BacklogSum)/float64(t.Sends)
	}
	return x
}

// station names where calls wait, with the figures.
func (m *Mount) station(spent map[Station]time.Duration, w way) {
	total := time.Duration(0)
	for _, d := range spent {
		total += d
	}
	because := func(format string, args ...any) { m.Because = append(m.Because, fmt.Sprintf(format, args...)) }
	m.Because = []string{}
	if total == 0 {
		because("No call took measurable time.")
		return
	}
	m.Waits = longest(spent)
	share := func(s Station) string { return unit.FormatPercent(spent[s].Seconds() / total.Seconds()) }
	between := share(Network) + " the network, " + share(Server) + " the server"
	if !w.known {
		between = share(Remote) + " the network or the server, " + share(Server) + " surely the server"
	}
	because("Of the time of all calls, %s is waiting for a slot or the transport, %s, %s this host's processing of "+
		"answers.", share(Slots), between, share(Client))
	switch {
	case w.known:
		because("The network's part is that of the quickest small procedure: %s for each call, and more for large ones.",
			unit.FormatSeconds(w.each.Seconds()))
	case w.each >= 0:
		because("Too few small calls show the network's part: it is at most %s for each call.",
			unit.FormatSeconds(w.each.Seconds()))
	default:
		because("No small call shows the network's part.")
	}
	var resent, sent uint64
	for _, o := range m.Operations {
		resent, sent = resent+o.Retransmissions, sent+o.Requests
	}
	if resent > 0 {
		because("%s of %s requests were sent again: a reconnected transport, lost datagrams, or a server that does not "+
			"answer in time.", unit.FormatCount(float64(resent)), unit.FormatCount(float64(sent)))
	}
}

// slots says which slots calls wait for: those of the transport, or of the NFS 4.1 session, which
// all connections share (RFC 8881, 2.10.6.1).
func (m *Mount) slots(tree *hostfs.Tree, transports []procfs.NFSTransport) {
	if m.Waits != Slots {
		return
	}
	because := func(format string, args ...any) { m.Because = append(m.Because, fmt.Sprintf(format, args...)) }
	for i, t := range m.Transports {
		if t.Backlog >= 1 {
			because("Transport %d: on average %.1f requests wait for a slot; at most %d slots were in use.", i+1, t.Backlog,
				t.SlotsMax)
		}
	}
	version, _ := m.option("vers")
	waiting := slices.ContainsFunc(transports,
		func(t procfs.NFSTransport) bool { return t.BacklogSum+t.SendingSum > t.Sends })
	switch session := version == "4.1" || version == "4.2"; {
	case session && !waiting:
		text := "Few requests wait for a transport: calls wait for a slot of the session. The server and the module " +
			"parameter nfs.max_session_slots bound them"
		if n, ok := tree.Number("sys/module/nfs/parameters/max_session_slots"); ok {
			text += fmt.Sprintf(" (%d here)", n)
		}
		because("%s; nconnect adds none.", text)
	case m.Connections == 1 && m.Protocol != "udp":
		because("One connection carries all calls; the mount option nconnect allows up to 16.")
	}
}

// transfers says where the server's part has time that bytes were on the way.
func (m *Mount) transfers() {
	if m.Waits != Server {
		return
	}
	for _, o := range m.Operations {
		if o.Waits == Server && o.BytesPerCall > firstFlight {
			m.Because = append(m.Because, fmt.Sprintf("%s moves %s a call: a slow path shows as the server, too.",
				o.Operation, unit.Bytes(o.BytesPerCall)))
			return
		}
	}
}

func (m *Mount) option(name string) (string, bool) {
	for _, o := range m.Options {
		if key, value, _ := strings.Cut(o, "="); key == name {
			return value, true
		}
	}
	return "", false
}

func (m *Mount) number(name string) int64 {
	text, _ := m.option(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// asked compares the sizes in effect with those that fstab asks for. The server bounds them, and
// the first mount of a server decides about connections.
func (m *Mount) asked(tree *hostfs.Tree) {
	for line := range strings.Lines(tree.Optional("etc/fstab")) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[0], "#") || f[1] != m.Path || !strings.HasPrefix(f[2], "nfs") {
			continue
		}
		for option := range strings.SplitSeq(f[3], ",") {
			name, value, _ := strings.Cut(option, "=")
			now, known := m.option(name)
			if name == "nconnect" && !known {
				now, known = strconv.Itoa(m.Connections), true
			}
			if (name == "rsize" || name == "wsize" || name == "nconnect") && known && now != value {
				m.Because = append(m.Because, fmt.Sprintf("/etc/fstab asks for %s=%s, and %s is in effect: the server or an "+
					"earlier mount of it decides.", name, value, now))
			}
		}
	}
}

// readAhead reads how far the kernel reads the mount ahead, and compares it with the size of a
// read.
func (m *Mount) readAhead(tree *hostfs.Tree) {
	b, err := tree.Read("proc/self/mountinfo")
	if err != nil {
		return
	}
	mounts, _ := procfs.ParseMountInfo(b) // what was parsed before a strange line is right
	for _, i := range mounts {
		if i.Path != m.Path {
			continue
		}
		kib, ok := tree.Number(fmt.Sprintf("sys/class/bdi/%d:%d/read_ahead_kb", i.Major, i.Minor))
		if !ok {
			return
		}
		m.ReadAhead = kib * 1024
		if m.ReadSize > 0 && m.ReadAhead < m.ReadSize {
			m.Because = append(m.Because, fmt.Sprintf("Read-ahead of %s is less than one read of %s: a sequential "+
				"reader has one call in flight at most.", unit.Bytes(m.ReadAhead), unit.Bytes(m.ReadSize)))
		}
		return
	}
}

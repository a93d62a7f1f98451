package iperf3

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Bounds that the program's client keeps and its server checks.
const (
	maxStreams       = 128       // MAX_STREAMS, of each direction
	maxOmitSeconds   = 600       // MAX_OMIT_TIME
	maxTimeSeconds   = 86400     // MAX_TIME, a day
	maxBlockBytes    = 1 << 20   // MAX_BLOCKSIZE, of a TCP block
	maxDatagramBytes = 65507     // MAX_UDP_BLOCKSIZE, the payload that IPv4 carries
	maxBufferBytes   = 512 << 20 // MAX_TCP_BUFFER
	defaultBlock     = 128 << 10 // DEFAULT_TCP_BLKSIZE
	// version is the version that this package reports. Servers and clients of all versions only
	// print it.
	version = "3.12 (linerate)"
)

// params are what a client requests, in the keys of the protocol. A rate is per stream.
type params struct {
	UDP           bool
	Omit          time.Duration // whole seconds, like Time
	Time          time.Duration // 0: bounded by Bytes or Blocks, or by the client's patience
	Bytes         int64         // of all streams of one direction together; 0: no bound
	Blocks        int64         // writes or datagrams, like Bytes; only the client counts them
	Streams       int           // of each direction
	Reverse       bool          // the server sends
	Bidir         bool          // both send, each on streams of its own
	BlockBytes    int           // of one write, or of a datagram's payload
	BitsPerSec    float64       // 0: unlimited
	PacingBits    float64       // fqrate: SO_MAX_PACING_RATE, bits per second
	PacingTimer   time.Duration // how often a sender of datagrams with a rate wakes up; 0: the default
	WindowBytes   int           // SO_SNDBUF and SO_RCVBUF; 0: the host's
	MSSBytes      int           // TCP_MAXSEG, which the client sets for both directions
	NoDelay       bool          // TCP_NODELAY of the data connections
	TOS           int           // of all data packets
	Congestion    string        // of the sending ends; empty: the host's
	DontFragment  bool          // of datagrams
	WideCounters  bool          // datagrams carry 8 bytes of sequence number
	ServerOutput  bool          // the server's output comes with its results
	ClientVersion string        // for the log

	sctp bool // requested, but not supported
}

// paramsJSON is the outgoing form. The order of keys and the omissions follow the program.
type paramsJSON struct {
	TCP           bool   `json:"tcp,omitempty"`
	UDP           bool   `json:"udp,omitempty"`
	Omit          int64  `json:"omit"`
	Time          int64  `json:"time"`
	Num           int64  `json:"num"`
	BlockCount    int64  `json:"blockcount"`
	MSS           int    `json:"MSS,omitempty"`
	NoDelay       bool   `json:"nodelay,omitempty"`
	Parallel      int    `json:"parallel"`
	Reverse       bool   `json:"reverse,omitempty"`
	Bidirectional bool   `json:"bidirectional,omitempty"`
	Window        int    `json:"window,omitempty"`
	Len           int    `json:"len"`
	Bandwidth     uint64 `json:"bandwidth,omitempty"`
	FQRate        uint64 `json:"fqrate,omitempty"`
	PacingTimer   int    `json:"pacing_timer"` // microseconds, only for servers that pace by a timer
	TOS           int    `json:"TOS,omitempty"`
	Congestion    string `json:"congestion,omitempty"`
	ServerOutput  int    `json:"get_server_output,omitempty"`
	WideCounters  int    `json:"udp_counters_64bit,omitempty"`
	DontFragment  int    `json:"dont_fragment,omitempty"`
	ClientVersion string `json:"client_version"`
}

// encode returns the message of the parameters.
func (p params) encode() ([]byte, error) {
	one := map[bool]int{true: 1} // these flags are numbers in the protocol
	return json.Marshal(paramsJSON{
		TCP: !p.UDP, UDP: p.UDP, Omit: int64(p.Omit / time.Second), Time: int64(p.Time / time.Second),
		Num: p.Bytes, BlockCount: p.Blocks, MSS: p.MSSBytes, NoDelay: p.NoDelay, Parallel: p.Streams,
		Reverse: p.Reverse, Bidirectional: p.Bidir, Window: p.WindowBytes, Len: p.BlockBytes,
		Bandwidth: uint64(p.BitsPerSec), FQRate: uint64(p.PacingBits), TOS: p.TOS,
		PacingTimer:  int(cmp.Or(p.PacingTimer, defaultPacingTimer) / time.Microsecond),
		Congestion:   p.Congestion,
		ServerOutput: one[p.ServerOutput], WideCounters: one[p.WideCounters], DontFragment: one[p.DontFragment],
		ClientVersion: version,
	})
}

// refusal is a reason not to run a test, for the log, and the code that makes the program's client
// print a similar sentence.
type refusal struct {
	code serverCode
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code serverCode, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// decodeParams parses the parameters of a client. It ignores unknown keys, and values of the wrong
// type as versions from 3.18 on do. Values outside the program's bounds return a *refusal.
func decodeParams(body []byte) (params, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return params{}, refuse(codeParams, "parameters: %v", err)
	}
	p := params{
		UDP: o.flag("udp"), Reverse: o.flag("reverse"), Bidir: o.flag("bidirectional"), NoDelay: o.flag("nodelay"),
		DontFragment: o.flag("dont_fragment"), WideCounters: o.flag("udp_counters_64bit"),
		ServerOutput: o.flag("get_server_output"),
		Omit:         time.Duration(o.whole("omit", math.MaxInt32)) * time.Second,
		Time:         time.Duration(o.whole("time", math.MaxInt32)) * time.Second,
		Bytes:        o.whole("num", math.MaxInt64), Blocks: o.whole("blockcount", math.MaxInt64),
		Streams:    int(o.whole("parallel", math.MaxInt32)),
		BlockBytes: int(o.whole("len", math.MaxInt32)), BitsPerSec: max(o.number("bandwidth"), 0),
		PacingBits:  max(o.number("fqrate"), 0),
		PacingTimer: time.Duration(max(o.whole("pacing_timer", 1e6), 0)) * time.Microsecond,
		WindowBytes: int(o.whole("window", math.MaxInt32)), MSSBytes: int(o.whole("MSS", math.MaxInt32)),
		TOS:        int(o.whole("TOS", math.MaxInt32)),
		Congestion: o.text("congestion", 64), ClientVersion: o.text("client_version", 64),
		sctp: o.flag("sctp"),
	}
	if p.Streams == 0 {
		p.Streams = 1
	}
	if p.BlockBytes == 0 && !p.UDP {
		p.BlockBytes = defaultBlock
	}
	return p, p.check(o.flag("tcp"))
}

// check compares the parameters with the bounds of the program.
func (p params) check(tcp bool) error {
	switch {
	case p.sctp:
		return refuse(codeNoSCTP, "it asks for SCTP")
	case tcp == p.UDP:
		return refuse(codeProtocol, "it asks neither for TCP nor for UDP, or for both")
	case p.Omit < 0 || p.Omit > maxOmitSeconds*time.Second:
		return refuse(codeOmit, "an omitted time of %v is not within 0 and %d s", p.Omit, maxOmitSeconds)
	case p.Time < 0 || p.Time > maxTimeSeconds*time.Second:
		return refuse(codeDuration, "a test of %v is not within 0 and %d s", p.Time, maxTimeSeconds)
	case p.Bytes < 0 || p.Blocks < 0:
		return refuse(codeParams, "a negative amount")
	case p.Streams < 1 || p.Streams > maxStreams:
		return refuse(codeStreams, "%d streams are not within 1 and %d", p.Streams, maxStreams)
	case !p.UDP && (p.BlockBytes < 1 || p.BlockBytes > maxBlockBytes):
		return refuse(codeBlock, "blocks of %d bytes are not within 1 and %d", p.BlockBytes, maxBlockBytes)
	case p.UDP && (p.BlockBytes < p.header().Bytes() || p.BlockBytes > maxDatagramBytes):
		return refuse(codeDatagram, "datagrams of %d bytes are not within %d and %d", p.BlockBytes, p.header().Bytes(),
			maxDatagramBytes)
	case p.WindowBytes < 0 || p.WindowBytes > maxBufferBytes:
		return refuse(codeBuffer, "a window of %d bytes is not within 0 and %d", p.WindowBytes, maxBufferBytes)
	case p.TOS < 0 || p.TOS > 255:
		return refuse(codeTOS, "a type of service of %d is not within 0 and 255", p.TOS)
	case p.Congestion != "" && !isCongestionName(p.Congestion):
		return refuse(codeCongestion, "no congestion control %q", p.Congestion)
	case math.IsInf(p.BitsPerSec, 0) || math.IsInf(p.PacingBits, 0):
		return refuse(codeTotalRate, "an infinite rate")
	}
	return nil
}

// isCongestionName restricts names that are passed to the kernel, which would load a module of that
// name, to the characters of the kernel's own names.
func isCongestionName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(s) <= 15 // TCP_CA_NAME_MAX with its NUL
}

// header returns the form of the datagrams.
func (p params) header() header { return header{wide: p.WideCounters} }

// all returns the number of streams of both directions together.
func (p params) all() int {
	if p.Bidir {
		return 2 * p.Streams
	}
	return p.Streams
}

// clientSends reports whether the client sends on the stream that was opened as number index, from
// 0 on.
func (p params) clientSends(index int) bool {
	if p.Bidir {
		return index < p.Streams
	}
	return !p.Reverse
}

// quota returns what the server sends over TCP, all its streams together; nil: until the client
// ends the test. Without omitted seconds, which the amount does not cover, a sender that goes on
// would claim what the client no longer reads. Datagrams have no quota: some may be lost, and the
// client waits for the whole amount.
func (p params) quota() *engine.Quota {
	n := p.Bytes
	if n == 0 && p.Blocks <= math.MaxInt64/maxBlockBytes {
		n = p.Blocks * int64(p.BlockBytes)
	}
	if p.UDP || p.Omit > 0 || n == 0 {
		return nil
	}
	return engine.NewQuota(n)
}

// Bounds of the pacing timer. The default is that of the program (DEFAULT_PACING_TIMER).
const (
	defaultPacingTimer = time.Millisecond
	minPacingTimer     = 200 * time.Microsecond // shorter ones would spin
	maxPacingTimer     = 10 * time.Millisecond  // longer bursts overflow the receiver
)

// burst returns the time whose datagrams the server sends together.
func (p params) burst() time.Duration {
	if p.PacingTimer <= 0 {
		return defaultPacingTimer
	}
	return min(max(p.PacingTimer, minPacingTimer), maxPacingTimer)
}

// streamID returns the id of a stream on the wire. Number 2 is skipped; the program has done so
// since its first version and relies on it.
func streamID(index int) int {
	if index == 0 {
		return 1
	}
	return index + 2
}

// object is a JSON object whose values are examined one by one, so that a value of the wrong type
// does not affect the others.
type object map[string]json.RawMessage

func (o object) has(key string) bool { return len(o[key]) > 0 }

// number returns a finite number; anything else becomes 0.
func (o object) number(key string) float64 {
	var n float64
	if json.Unmarshal(o[key], &n) != nil {
		return 0
	}
	return n
}

// whole returns a number without its fraction, clamped to -limit and limit.
func (o object) whole(key string, limit int64) int64 {
	var exact int64
	if json.Unmarshal(o[key], &exact) == nil {
		return max(min(exact, limit), -limit)
	}
	n := o.number(key)
	switch {
	case n >= float64(limit):
		return limit
	case n <= -float64(limit):
		return -limit
	}
	return int64(n)
}

// flag reports whether a value is true or a number other than 0: the protocol has both forms.
func (o object) flag(key string) bool {
	var on bool
	if json.Unmarshal(o[key], &on) == nil {
		return on
	}
	return o.number(key) != 0
}

// text returns a string, truncated to limit bytes.
func (o object) text(key string, limit int) string {
	var s string
	if json.Unmarshal(o[key], &s) != nil {
		return ""
	}
	return s[:min(len(s), limit)]
}

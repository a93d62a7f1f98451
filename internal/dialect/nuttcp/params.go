package nuttcp

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Default ports of the program.
const (
	DefaultPort     = 5000 // of the control connection
	DefaultDataPort = 5001 // of the first data connection
)

// version is the version that both ends of this package report: that of the captures.
const version = "6.1.2"

// hello is the first line of both ends; greets is its beginning in every version.
const (
	hello  = greets + "v" + version + "\n"
	greets = "HELO nuttcp "
)

// Bounds of what a server accepts and a client requests.
const (
	maxStreams     = 64              // each is a descriptor and a goroutine here
	maxBlockBytes  = 8 << 20         // of TCP; the only number that determines memory
	maxPacketBytes = 65507           // the UDP payload that IPv4 carries
	lowestPort     = 1024            // lower ones belong to services
	minInterval    = 0.05            // seconds; each interval is a line to write
	unlimitedRate  = math.MaxUint32  // kbit/s; the program's value for unlimited, over TCP
	unlimitedBlock = math.MaxInt32   // blocks; the program's value for "until the time is over"
	maxSeconds     = 365 * 24 * 3600 // of timeout and interval
)

// Bits of format.
const (
	formatSent      = 1    // -fxmitstats: include what was sent
	formatTotals    = 4    // -frunningtotal
	formatNoDrops   = 8    // -f-drops
	formatNoPercent = 16   // -f-percentloss
	formatParse     = 64   // -fparse: key=value
	formatDefault   = 2048 // include the round-trip time, which the client adds
)

// params are what a client requests.
type params struct {
	blockBytes  int     // buflen: of one write or datagram
	blocks      int64   // nbuf; unlimitedBlock: a time ends the test
	windowBytes int     // win
	streams     int     // nstream
	rateKbit    int64   // rate, of all streams together; unlimitedRate: unlimited
	port        int     // of the first data connection
	transmit    bool    // trans: the client sends
	seconds     float64 // timeout; 0: the amount ends the test
	udp         bool
	interval    float64 // seconds; 0: no interim reports
	reverse     bool    // the receiver connects, not the sender
	format      int     // bits, see above
	traceroute  bool    // run traceroute to the client too
	thirdParty  bool    // run the test against another host
	multicast   bool    // send to a group
	mssBytes    int     // datamss
	tos         int     // of data sockets
	noDelay     bool    // of data sockets
}

// line formats the parameters as 6.1.2 does. That version's server parses them with scanf(3) and
// this very text, so every blank matters.
func (p params) line() string {
	b := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	return fmt.Sprintf("buflen = %d, nbuf = %d, win = %d, nstream = %d, rate = %d, port = %d, trans = %d, "+
		"braindead = 0, timeout = %f, udp = %d, vers = %s, interval = %f, reverse = %d, format = %d, "+
		"traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , datamss = %d , "+
		"tos = %x , nbuf_bytes = 0 , rate_pps = 0 , nodelay = %d\n",
		p.blockBytes, p.blocks, p.windowBytes, p.streams, p.rateKbit, p.port, b(p.transmit), p.seconds, b(p.udp),
		version, p.interval, b(p.reverse), p.format, p.mssBytes, p.tos, b(p.noDelay))
}

// errParams reports a line that does not contain parameters.
var errParams = errors.New("parameters")

// parseParams parses the line of any version: older ones have fewer keys, and blanks do not matter.
// The first eight keys and udp are required.
func parseParams(line string) (params, error) {
	// A key that an older version does not send means no bound.
	p := params{blocks: unlimitedBlock, rateKbit: unlimitedRate}
	seen := make(map[string]bool)
	// Keys are identified by name, in any order. The program's own server reads by position. Being
	// more generous is safe, because all values are checked afterwards.
	for item := range strings.SplitSeq(strings.TrimSpace(line), ",") {
		key, value, ok := strings.Cut(item, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			return params{}, fmt.Errorf("%w: %q is not key = value", errParams, clip(item))
		}
		// The second value would silently replace the one that a reader of the log sees first.
		if seen[key] {
			return params{}, fmt.Errorf("%w: %s is there twice", errParams, clip(key))
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return params{}, fmt.Errorf("%w: %s = %q: %w", errParams, clip(key), clip(value), err)
		}
	}
	for _, key := range []string{"buflen", "nbuf", "nstream", "port", "trans", "timeout", "udp"} {
		if !seen[key] {
			return params{}, fmt.Errorf("%w: %s is missing", errParams, key)
		}
	}
	return p, p.check()
}

// clip makes a stranger's text short and printable.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' && r != '…' {
			return '.'
		}
		return r
	}, s)
}

// set sets one value; keys that do not matter here are ignored, whatever their values.
func (p *params) set(key, value string) (err error) {
	switch key {
	case "buflen":
		p.blockBytes, err = strconv.Atoi(value)
	// Also sent together with a timeout: then it is the largest possible number, and the time ends
	// the test.
	case "nbuf":
		p.blocks, err = strconv.ParseInt(value, 10, 64)
	case "win":
		p.windowBytes, err = strconv.Atoi(value)
	case "nstream":
		p.streams, err = strconv.Atoi(value)
	// In units of 1000 bits per second. Over UDP the program's default is 1000, one megabit.
	case "rate":
		p.rateKbit, err = strconv.ParseInt(value, 10, 64)
	case "port":
		p.port, err = strconv.Atoi(value)
	case "trans":
		p.transmit, err = parseFlag(value)
	case "timeout":
		p.seconds, err = parseSeconds(value)
	case "udp":
		p.udp, err = parseFlag(value)
	case "interval":
		p.interval, err = parseSeconds(value)
	case "reverse":
		p.reverse, err = parseFlag(value)
	// Unknown bits belong to newer versions and change how lines look, not what is measured, so
	// they are kept and have no effect.
	case "format":
		p.format, err = strconv.Atoi(value)
	case "traceroute":
		p.traceroute, err = parseFlag(value)
	// A host to test on the client's behalf, which would lend this server's address to anyone.
	case "thirdparty":
		p.thirdParty = value != "_NULL_"
	case "multicast":
		p.multicast = value != "0"
	case "datamss":
		p.mssBytes, err = strconv.Atoi(value)
	case "tos":
		// The only number in base 16.
		var n uint64
		n, err = strconv.ParseUint(value, 16, 8)
		p.tos = int(n)
	case "nodelay":
		p.noDelay, err = parseFlag(value)
	}
	return err
}

func parseFlag(s string) (bool, error) {
	switch s {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, errors.New("not 0 or 1")
}

func parseSeconds(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, err
	}
	// Written so that NaN fails too.
	if !(v >= 0 && v <= maxSeconds) {
		return 0, errors.New("not a time")
	}
	return v, nil
}

// check returns an error for parameters that no server should run.
func (p params) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", errParams, fmt.Sprintf(format, args...))
	}
	// Only a block to send is allocated by these numbers. They are bounded so that sums and
	// products cannot overflow.
	most := maxBlockBytes
	if p.udp {
		most = maxPacketBytes
	}
	switch {
	case p.blockBytes < 1 || p.blockBytes > most:
		return bad("buflen %d is not within 1 to %d", p.blockBytes, most)
	// A mark is recognized by its length of four bytes, see begins.
	case p.udp && p.blockBytes <= tagBytes:
		return bad("datagrams of %d bytes cannot be distinguished from the marks of the test", p.blockBytes)
	case p.blocks < 1:
		return bad("nbuf %d", p.blocks)
	case p.windowBytes < 0 || p.windowBytes > 1<<30:
		return bad("win %d", p.windowBytes)
	case p.streams < 1 || p.streams > maxStreams:
		return bad("nstream %d is not within 1 to %d", p.streams, maxStreams)
	case p.udp && p.streams != 1:
		return bad("nstream %d with udp", p.streams)
	// The server listens on, or connects to, all of the ports, one per stream.
	case p.port < lowestPort || p.port+p.streams-1 > math.MaxUint16:
		return bad("port %d with nstream %d is not within %d to %d", p.port, p.streams, lowestPort, math.MaxUint16)
	case p.rateKbit < 0:
		return bad("rate %d", p.rateKbit)
	case p.interval != 0 && p.interval < minInterval:
		return bad("interval %g is under %g s", p.interval, minInterval)
	case p.mssBytes < 0 || p.mssBytes > math.MaxInt16: // TCP_MAXSEG accepts no more, tcp(7)
		return bad("datamss %d", p.mssBytes)
	case p.traceroute:
		return bad("traceroute is not supported")
	case p.thirdParty:
		return bad("third-party tests are not supported")
	case p.multicast:
		return bad("multicast is not supported")
	}
	return nil
}

// amount returns how many bytes the sender shall send, nbuf blocks of buflen; 0: a time ends the
// test. The flag nbuf_bytes on the wire only means that the user gave bytes: the client has already
// divided them.
func (p params) amount() int64 {
	if p.blocks >= unlimitedBlock {
		return 0
	}
	return p.blocks * int64(p.blockBytes)
}

// duration returns how long the sender shall send; 0: the amount ends the test.
func (p params) duration() time.Duration { return time.Duration(p.seconds * float64(time.Second)) }

// bitsPerSecond returns the rate of all streams together; 0: unlimited.
func (p params) bitsPerSecond() float64 {
	if p.rateKbit == 0 || p.rateKbit >= unlimitedRate {
		return 0
	}
	return float64(p.rateKbit) * 1000
}

package nuttcp

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Ports that the program uses when it is not told otherwise.
const (
	DefaultPort     = 5000 // of the control connection
	DefaultDataPort = 5001 // of the first data connection
)

// version is what both ends of this package say they are: the one that was watched.
const version = "6.1.2"

// hello is the first line of both ends; greets is what it begins with in every version.
const (
	hello  = greets + "v" + version + "\n"
	greets = "HELO nuttcp "
)

// Bounds of what a server takes and a client asks for.
const (
	maxStreams     = 64              // each is a descriptor and a goroutine here
	maxBlockBytes  = 8 << 20         // of TCP; the one number that memory is taken for
	maxPacketBytes = 65507           // what UDP over IPv4 carries
	lowestPort     = 1024            // those below belong to services
	minInterval    = 0.05            // seconds; each is a line to write
	unlimitedRate  = math.MaxUint32  // kbit/s; the program's word for as fast as it goes, over TCP
	unlimitedBlock = math.MaxInt32   // blocks; its word for until the time is over
	maxSeconds     = 365 * 24 * 3600 // of timeout and interval
)

// Bits of format.
const (
	formatSent      = 1    // -fxmitstats: tell what was sent, too
	formatTotals    = 4    // -frunningtotal
	formatNoDrops   = 8    // -f-drops
	formatNoPercent = 16   // -f-percentloss
	formatParse     = 64   // -fparse: key=value
	formatDefault   = 2048 // tell the round-trip time, which the client does by itself
)

// params are what a client asks for.
type params struct {
	blockBytes  int     // buflen: of one write or datagram
	blocks      int64   // nbuf; unlimitedBlock: time ends the test
	windowBytes int     // win
	streams     int     // nstream
	rateKbit    int64   // rate, of all streams together; unlimitedRate: none
	port        int     // of the first data connection
	transmit    bool    // trans: the client sends
	seconds     float64 // timeout; 0: the amount ends the test
	udp         bool
	interval    float64 // seconds; 0: no reports while it runs
	reverse     bool    // the receiver connects, not the sender
	format      int     // bits, see above
	traceroute  bool    // run traceroute to the client as well
	thirdParty  bool    // run the test against some other host
	multicast   bool    // send to a group
	mssBytes    int     // datamss
	tos         int     // of data sockets
	noDelay     bool    // of data sockets
}

// line says the parameters as 6.1.2 does. That version's server takes them by scanf(3) with this
// very text, so every blank counts.
func (p params) line() string {
	b := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	return fmt.Sprintf("buflen = %d, nbuf = %d, win = %d, nstream = %d, rate = %d, port = %d, trans = %d, braindead = 0, timeout = %f, udp = %d, "+
		"vers = %s, interval = %f, reverse = %d, format = %d, traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , datamss = %d , "+
		"tos = %x , nbuf_bytes = 0 , rate_pps = 0 , nodelay = %d\n",
		p.blockBytes, p.blocks, p.windowBytes, p.streams, p.rateKbit, p.port, b(p.transmit), p.seconds, b(p.udp),
		version, p.interval, b(p.reverse), p.format, p.mssBytes, p.tos, b(p.noDelay))
}

// errParams is a line that is none of parameters.
var errParams = errors.New("parameters")

// parseParams reads the line of any version: older ones say less, and blanks do not matter. The
// first eight and udp must be there.
func parseParams(line string) (params, error) {
	// What an older version does not say is as if it had no bound there.
	p := params{blocks: unlimitedBlock, rateKbit: unlimitedRate}
	seen := make(map[string]bool)
	// Keys are looked up by name and in any order. The program's own server reads by position;
	// being more generous costs nothing, because what is taken is checked afterwards, all of it.
	for item := range strings.SplitSeq(strings.TrimSpace(line), ",") {
		key, value, ok := strings.Cut(item, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			return params{}, fmt.Errorf("%w: %q is no key = value", errParams, clip(item))
		}
		// The second one would silently win over what a reader of the log believes was asked for.
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

// clip keeps what a stranger sent short and readable in a message.
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

// set takes one value; keys that do not matter here are ignored, whatever they say.
func (p *params) set(key, value string) (err error) {
	switch key {
	case "buflen":
		p.blockBytes, err = strconv.Atoi(value)
	// It comes with the timeout as well: then it is the largest number there is, and the time ends
	// the test.
	case "nbuf":
		p.blocks, err = strconv.ParseInt(value, 10, 64)
	case "win":
		p.windowBytes, err = strconv.Atoi(value)
	case "nstream":
		p.streams, err = strconv.Atoi(value)
	// In units of 1000 bits per second. Over UDP the program says 1000, a megabit, where its user
	// says nothing.
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
	// Unknown bits are of newer versions and change how lines look, not what is measured, so they
	// are kept and do nothing.
	case "format":
		p.format, err = strconv.Atoi(value)
	case "traceroute":
		p.traceroute, err = parseFlag(value)
	// A host to run the test against on the client's behalf, which would lend this server's address
	// to anybody.
	case "thirdparty":
		p.thirdParty = value != "_NULL_"
	case "multicast":
		p.multicast = value != "0"
	case "datamss":
		p.mssBytes, err = strconv.Atoi(value)
	case "tos":
		// Alone among the numbers it is written in base 16.
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
	// Written so that what is no number fails, too.
	if !(v >= 0 && v <= maxSeconds) {
		return 0, errors.New("not a time")
	}
	return v, nil
}

// check refuses what no server should do.
func (p params) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", errParams, fmt.Sprintf(format, args...))
	}
	// Nothing is allocated by these numbers but a block to send; they are bounded so that sums and
	// products of them cannot wrap.
	most := maxBlockBytes
	if p.udp {
		most = maxPacketBytes
	}
	switch {
	case p.blockBytes < 1 || p.blockBytes > most:
		return bad("buflen %d is not within 1 to %d", p.blockBytes, most)
	// A mark is recognised by its four bytes of length, see begins.
	case p.udp && p.blockBytes <= tagBytes:
		return bad("datagrams of %d bytes cannot be told from the marks of the test", p.blockBytes)
	case p.blocks < 1:
		return bad("nbuf %d", p.blocks)
	case p.windowBytes < 0 || p.windowBytes > 1<<30:
		return bad("win %d", p.windowBytes)
	case p.streams < 1 || p.streams > maxStreams:
		return bad("nstream %d is not within 1 to %d", p.streams, maxStreams)
	case p.udp && p.streams != 1:
		return bad("nstream %d with udp", p.streams)
	// All of the ports are listened on or connected to, one per stream.
	case p.port < lowestPort || p.port+p.streams-1 > math.MaxUint16:
		return bad("port %d with nstream %d is not within %d to %d", p.port, p.streams, lowestPort, math.MaxUint16)
	case p.rateKbit < 0:
		return bad("rate %d", p.rateKbit)
	case p.interval != 0 && p.interval < minInterval:
		return bad("interval %g is under %g s", p.interval, minInterval)
	case p.mssBytes < 0 || p.mssBytes > math.MaxInt16: // TCP_MAXSEG takes no more, tcp(7)
		return bad("datamss %d", p.mssBytes)
	case p.traceroute:
		return bad("traceroute is not served here")
	case p.thirdParty:
		return bad("third parties are not served here")
	case p.multicast:
		return bad("multicast is not served here")
	}
	return nil
}

// amount is how many bytes the sender is to send, nbuf blocks of buflen; 0: time ends the test. The
// flag nbuf_bytes on the wire only says that the user had asked in bytes: the client has divided
// already.
func (p params) amount() int64 {
	if p.blocks >= unlimitedBlock {
		return 0
	}
	return p.blocks * int64(p.blockBytes)
}

// duration is how long the sender is to send; 0: the amount ends the test.
func (p params) duration() time.Duration { return time.Duration(p.seconds * float64(time.Second)) }

// bitsPerSecond is the rate of all streams together; 0: as fast as it goes.
func (p params) bitsPerSecond() float64 {
	if p.rateKbit == 0 || p.rateKbit >= unlimitedRate {
		return 0
	}
	return float64(p.rateKbit) * 1000
}

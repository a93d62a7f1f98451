package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// testNames are the arguments of --test, in the order of the help.
const testNames = "stream, rr, crr, udp, ping, mtu, load or burst"

// testFlags describe how one test runs. They have iperf3's names where iperf3 has the flag, and its
// letters.
type testFlags struct {
	test             string
	udp              bool
	warmUp           time.Duration
	bytes            string
	rate, packetRate string
	length           string
	request, respond string
	gap, probe       time.Duration
	send, receive    string
	copying          bool
	batch            string
	busyPoll         bool
	congestion       string
	window           string
	mss              int
	noDelay          bool
	tos              string
	dontFragment     bool
	sourcePort       int
	cpus             string

	set *pflag.FlagSet // knows which flags were given
}

func (t *testFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.test, "test", "", "one test instead of the suite: "+testNames)
	f.BoolVarP(&t.udp, "udp", "u", false, "short for --test udp")
	f.DurationVarP(&t.warmUp, "warm-up", "O", -1,
		"time to leave out at the start of a test; default or negative: until the rate is steady")
	f.Lookup("warm-up").DefValue = "0s" // keeps the negative default out of the help
	f.StringVarP(&t.bytes, "bytes", "n", "",
		"stream, udp: send this amount instead of running for a time, as in 900M; --duration is then the upper "+
			"bound; burst: the longest train (default 32768 datagrams)")
	f.StringVarP(&t.rate, "rate", "b", "",
		"stream, udp: payload bits per second in each direction, as in 100M or 1.5G (default: as fast as possible)")
	f.StringVar(&t.packetRate, "packet-rate", "", "udp: datagrams per second instead, as in 50k")
	f.StringVarP(&t.length, "length", "l", "",
		"udp, burst: payload of one datagram, 16 to 65507 bytes (default 1400); ping, load: of one ping (default 56)")
	f.StringVar(&t.request, "request", "", "rr, crr: bytes of a request (default 1)")
	f.StringVar(&t.respond, "response", "", "rr, crr: bytes of a response (default 1)")
	f.DurationVar(&t.gap, "gap", 0, "ping, load: time between two pings (default 100ms, 10ms for load)")
	f.DurationVar(&t.probe, "probe", 0, "send pings with this gap during the test, and show the round trip under load")
	f.StringVar(&t.send, "send", "",
		"stream: how bytes are passed to the kernel: copy, sendfile or splice (default: the fastest on the "+
			"sending host)")
	f.StringVar(&t.receive, "receive", "",
		"stream: how bytes are taken from the kernel: copy or truncate (default: the least expensive that works)")
	f.BoolVar(&t.copying, "copy", false,
		"stream: copy every byte at both ends, as most programs do; short for --send copy --receive copy")
	f.StringVar(&t.batch, "batch", "",
		"udp: datagrams per system call: gso, mmsg or single (default: the fastest that works)")
	f.BoolVar(&t.busyPoll, "busy-poll", false,
		"rr, crr, udp: poll the socket instead of sleeping; takes a whole CPU at each end")
	f.StringVarP(&t.congestion, "cc", "C", "",
		"congestion control of this test's connections, one of net.ipv4.tcp_available_congestion_control")
	f.StringVarP(&t.window, "window", "w", "", "socket buffers at both ends, as in 4M (default: tuned by the kernel)")
	f.IntVarP(&t.mss, "mss", "M", 0, "largest TCP segment in bytes (default: the kernel's)")
	f.BoolVarP(&t.noDelay, "no-delay", "N", false,
		"switch Nagle's algorithm off, or on with =false (default: off for rr and crr)")
	f.StringVarP(&t.tos, "tos", "S", "", "IP type of service or IPv6 traffic class of data packets, 0 to 255 or 0x…")
	f.BoolVar(&t.dontFragment, "dont-fragment", false,
		"udp, burst: never fragment datagrams; the path drops those that do not fit, or the test ends where this "+
			"host knows it")
	f.IntVar(&t.sourcePort, "source-port", 0,
		"local port of the first data connection, plus one for each further one; the same ports use the same "+
			"receive queues")
	f.StringVarP(&t.cpus, "cpu", "A", "",
		"CPUs of the test's threads, NEAR or NEAR/FAR, each a list as in 0-3,8 (default: chosen)")
	t.set = f
}

// named returns the first given flag that is about a single test, with its dashes; empty: none was
// given.
func (t *testFlags) named() string {
	var first string
	t.set.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "warm-up", "bytes", "rate", "packet-rate", "length", "request", "response", "gap", "probe", "send",
			"receive", "copy", "batch",
			"busy-poll", "cc", "window", "mss", "no-delay", "tos", "dont-fragment", "source-port", "cpu", "confidence":
			if first == "" {
				first = "--" + f.Name
			}
		}
	})
	return first
}

// letter reports whether a flag was given that iperf3 has a letter for, and that is about its test.
func (t *testFlags) letter() bool {
	for _, name := range []string{"warm-up", "bytes", "rate", "cc", "window", "mss", "no-delay", "tos", "cpu"} {
		if t.set.Changed(name) {
			return true
		}
	}
	return false
}

// spec returns the test that the flags ask for. Normalize refuses what the test has no use for.
func (t *testFlags) spec(l loadFlags) (traffic.Spec, error) {
	if err := given(t.set, "gap"); err != nil {
		return traffic.Spec{}, err
	}
	s := traffic.Spec{
		Test: traffic.Test(t.test), Direction: l.direction(), Streams: l.parallel, Interval: l.interval,
		WarmUp: t.warmUp, Gap: t.gap, ProbeGap: t.probe,
		SendMethod: engine.SendMethod(t.send), ReceiveMethod: engine.ReceiveMethod(t.receive), Batch: t.batch,
		BusyPoll:   t.busyPoll,
		Congestion: t.congestion, MSSBytes: t.mss, DontFragment: t.dontFragment, SourcePort: t.sourcePort,
	}
	// With an amount the time is only a bound; the default of ten seconds would end most early.
	if t.bytes == "" || t.set.Changed("duration") {
		s.Duration = l.duration
	}
	if t.set.Changed("no-delay") {
		s.NoDelay = &t.noDelay
	}
	if t.copying {
		if t.send != "" || t.receive != "" {
			return s, usagef("--copy sets both --send and --receive: leave those out")
		}
		s.SendMethod, s.ReceiveMethod = engine.SendCopy, engine.ReceiveCopy
	}
	if err := t.known(); err != nil {
		return s, err
	}
	var err error
	if s.Bytes, err = amount("--bytes", t.bytes); err != nil {
		return s, err
	}
	for _, f := range []struct {
		name, text string
		into       *int
	}{
		{"--window", t.window, &s.WindowBytes}, {"--request", t.request, &s.RequestBytes},
		{"--response", t.respond, &s.ResponseBytes},
	} {
		n, err := amount(f.name, f.text)
		if err != nil {
			return s, err
		}
		*f.into = int(min(n, 1<<40)) // where an int has 64 bits; Normalize refuses that much
	}
	length, err := amount("--length", t.length)
	if err != nil {
		return s, err
	}
	switch s.Test {
	case traffic.Ping, traffic.Load:
		s.RequestBytes = max(s.RequestBytes, int(length))
		if t.gap == 0 && s.Test == traffic.Ping {
			// Ten a second load no path; a short test has ten all the same.
			s.Gap = min(100*time.Millisecond, max(l.duration/10, time.Millisecond))
		}
	default:
		s.PacketBytes = int(length)
	}
	if s.RateBitsPerSec, s.RatePacketsPerSec, err = t.rates(); err != nil {
		return s, err
	}
	if s.TOS, err = parseTOS(t.tos); err != nil {
		return s, err
	}
	if s.NearCPUs, s.FarCPUs, err = parseCPUs(t.cpus); err != nil {
		return s, err
	}
	if !t.set.Changed("warm-up") && s.Test != traffic.Stream && s.Test != traffic.RR && s.Test != traffic.CRR {
		s.WarmUp = 0 // these tests have no ramp
	}
	if _, err := s.Normalize(); err != nil {
		return s, usageError{err}
	}
	return s, nil
}

// known refuses an unknown test or method, and lists the known ones.
func (t *testFlags) known() error {
	for _, w := range []struct {
		flag, what, word string
		words            []string
	}{
		{"test", "test", t.test, strings.Fields(strings.NewReplacer(",", "", " or ", " ").Replace(testNames))},
		{"batch", "batch", t.batch, []string{"gso", "mmsg", "single"}},
		{"send", "way to send", t.send, []string{string(engine.SendCopy), string(engine.SendSendfile),
			string(engine.SendSplice)}},
		{"receive", "way to receive", t.receive, []string{string(engine.ReceiveCopy), string(engine.ReceiveTruncate)}},
	} {
		if w.word != "" && !slices.Contains(w.words, w.word) {
			return usagef("--%s: no %s %q; choose from %s", w.flag, w.what, w.word, strings.Join(w.words, ", "))
		}
	}
	return nil
}

func (t *testFlags) rates() (bits, packets float64, err error) {
	if t.rate != "" {
		r, err := unit.ParseBitRate(t.rate)
		if err != nil {
			return 0, 0, usagef("--rate: %w", err)
		}
		bits = float64(r)
	}
	if t.packetRate != "" {
		if packets, err = unit.ParseCount(t.packetRate); err != nil {
			return 0, 0, usagef("--packet-rate: %w", err)
		}
	}
	return bits, packets, nil
}

// amount reads a flag that is a number of bytes; an empty one is 0.
func amount(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := unit.ParseBytes(text)
	if err != nil {
		return 0, usagef("%s: %w", name, err)
	}
	if n <= 0 {
		return 0, usagef("%s %s: must be more than 0", name, text)
	}
	return int64(n), nil
}

// parseTOS reads a type of service from 0 to 255, in decimal or in the base of a leading 0x or 0.
func parseTOS(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 0, 8)
	if err != nil {
		return 0, usagef("--tos %s: write a number from 0 to 255, or 0x00 to 0xff", text)
	}
	return int(n), nil
}

// parseCPUs reads NEAR or NEAR/FAR.
func parseCPUs(text string) (near, far []int, err error) {
	nearText, farText, _ := strings.Cut(text, "/")
	if near, err = sys.ParseCPUList(nearText); err == nil {
		far, err = sys.ParseCPUList(farText)
	}
	if err != nil {
		return nil, nil, usagef("--cpu %s: write a list as in 0-3,8, or two with a slash between them, NEAR/FAR", text)
	}
	return near, far, nil
}

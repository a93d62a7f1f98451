package cli

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/host/calc"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// calcCommand does the arithmetic of tuning. It reads no host.
func (a *app) calcCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "calc",
		Short: "Calculate interrupt timers, windows, bursts, buses and polling, with the formula",
		Long: `Calculate what a setting means or which one a goal needs, and show the formula of each value.
calc reads and changes nothing: every number comes from the command line. Rates are bits per
second (1G), sizes bytes (8k, 64KiB), times have a unit (617us), counts may have a prefix (81k).`,
		Example: "  linerate calc moderation --packets 81000 --per-interrupt 50\n" +
			"  linerate calc window --rate 1G --rtt 100ms --connections 40",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.calcModeration(), a.calcWindow(), a.calcBurst(), a.calcBus(), a.calcPolling())
	return c
}

// calculation is a question that the flags have filled in.
type calculation interface {
	Result() (*calc.Result, error)
}

// calculate answers a question. What is missing in it is a mistake on the command line.
func (a *app) calculate(q calculation) error {
	r, err := q.Result()
	if err != nil {
		return usageError{err}
	}
	doc := report.NewCalc(a.envelope(""), r)
	return a.print(doc, func(s text.Style) error { return text.Calc(a.out, doc, s) })
}

// Largest counts of a calculation: the connections are those of plan, and no ring or look holds
// more frames.
const (
	mostConnections = 100_000_000
	// One in a thousand seconds, and far more than any link or clock has, for rates. Other counts are
	// whole.
	leastCount, mostCount = 1e-3, 1e12
	mostTime              = time.Hour
	mostFrames            = 1 << 24
)

// quantityFlag is a flag with a unit, read by the parser of its type. Zero and less are refused:
// they would count as not given.
type quantityFlag struct {
	set  func(string) (positive bool, err error)
	kind string
	text string
}

func (f *quantityFlag) String() string { return f.text }
func (f *quantityFlag) Type() string   { return f.kind }

func (f *quantityFlag) Set(s string) error {
	positive, err := f.set(s)
	if err != nil {
		return err
	}
	if !positive {
		return fmt.Errorf("%q: must be more than 0", s)
	}
	f.text = s
	return nil
}

// calcFlags defines the flags of a calculation.
type calcFlags struct{ *cobra.Command }

func (c calcFlags) quantity(name, kind, usage string, set func(string) (bool, error)) {
	c.Flags().Var(&quantityFlag{set: set, kind: kind}, name, usage)
}

func (c calcFlags) rate(into *unit.BitRate, name, usage string) {
	c.quantity(name, "rate", usage, func(s string) (_ bool, err error) {
		*into, err = unit.ParseBitRate(s)
		if err == nil && *into > 0 && (*into < plan.LeastLink || *into > plan.MostLink) {
			err = fmt.Errorf("%q: links have %v to %v; write the unit, as in 10G", s, plan.LeastLink, plan.MostLink)
		}
		return *into > 0, err
	})
}

func (c calcFlags) bytes(into *unit.Bytes, name, usage string) {
	c.quantity(name, "bytes", usage, func(s string) (_ bool, err error) {
		if *into, err = unit.ParseBytes(s); err == nil && *into > plan.MostMemory {
			err = fmt.Errorf("%s: more than any host has (%v)", s, plan.MostMemory)
		}
		return *into > 0, err
	})
}

func (c calcFlags) count(into *float64, name, usage string) {
	c.quantity(name, "count", usage, func(s string) (_ bool, err error) {
		if *into, err = unit.ParseCount(s); err == nil && *into > 0 && (*into < leastCount || *into > mostCount) {
			err = fmt.Errorf("%s: must be from %v to %s", s, leastCount, unit.FormatCount(mostCount))
		}
		return *into > 0, err
	})
}

func (c calcFlags) time(into *time.Duration, name, usage string) {
	c.quantity(name, "time", usage, func(s string) (bool, error) {
		span, err := unit.ParseSpan(s)
		if *into = span.Duration(); err == nil && *into > mostTime {
			err = fmt.Errorf("%s: more than %v", s, mostTime)
		}
		return *into > 0, err
	})
}

// whole defines a flag of a whole number, at most most.
func (c calcFlags) whole(set func(int), most int, name, usage string) {
	c.quantity(name, "count", usage, func(s string) (bool, error) {
		n, err := unit.ParseCount(s)
		switch {
		case err != nil:
			return false, err
		case n > float64(most):
			return false, fmt.Errorf("%s: more than %d", s, most)
		case n != math.Trunc(n):
			return false, fmt.Errorf("%s: write a whole number", s)
		}
		set(int(n))
		return n > 0, nil
	})
}

// mtu defines the flag that most calculations share.
func (c calcFlags) mtu(into *int) {
	c.whole(func(n int) { *into = n }, math.MaxUint16, "mtu",
		"payload of a frame in bytes; 46 makes the smallest frame (default 1500)")
}

func (a *app) calcModeration() *cobra.Command {
	var q calc.Moderation
	c := calcFlags{&cobra.Command{
		Use:   "moderation",
		Short: "The interrupt timer for a rate, an interval or frames per interrupt, and what it costs",
		Long: `Calculate an interrupt timer from --interrupts, from --interval, or from --packets with
--per-interrupt, and what follows: the register of an 8254x, how long a frame waits, the highest
rate of transactions. --link adds frame times and packet timers, and is the load if --packets
gives none.`,
		Example: "  linerate calc moderation --interrupts 3000\n" +
			"  linerate calc moderation --packets 81000 --per-interrupt 50\n" +
			"  linerate calc moderation --link 1G --mtu 46",
	}}
	c.RunE = func(*cobra.Command, []string) error { return a.calculate(q) }
	c.count(&q.Interrupts, "interrupts", "interrupts per second")
	c.time(&q.Interval, "interval", "time between two interrupts")
	c.count(&q.PerInterrupt, "per-interrupt", "frames for each interrupt")
	c.count(&q.Packets, "packets", "packets per second")
	c.rate(&q.Link, "link", "speed of the link")
	c.time(&q.RoundTrip, "rtt", "round trip without moderation at either end")
	c.whole(func(n int) { q.Descriptors = uint32(n) }, mostFrames, "ring", "descriptors of the receive ring")
	c.mtu(&q.MTUBytes)
	return c.Command
}

func (a *app) calcWindow() *cobra.Command {
	var q calc.Window
	c := calcFlags{&cobra.Command{
		Use:   "window",
		Short: "The third of rate, round trip and window, with the window scale and the memory",
		Long: `Calculate the third of --rate, --rtt and --window, the window scale, and the memory of
--connections with that window. With all three, show what the window allows and what the rate
needs.`,
		Example: "  linerate calc window --rate 1G --rtt 100ms\n  linerate calc window --window 64KiB --rtt 20ms",
	}}
	c.RunE = func(*cobra.Command, []string) error { return a.calculate(q) }
	c.rate(&q.Rate, "rate", "rate of a connection")
	c.time(&q.RoundTrip, "rtt", "round trip")
	c.bytes(&q.Window, "window", "receive window")
	c.whole(func(n int) { q.Connections = n }, mostConnections, "connections", "connections at a time (default 1)")
	return c.Command
}

func (a *app) calcBurst() *cobra.Command {
	var q calc.Burst
	c := calcFlags{&cobra.Command{
		Use:   "burst",
		Short: "How many back-to-back frames a buffer or a ring holds, and how many a transfer makes",
		Long: `Calculate how many back-to-back frames a NIC's own memory holds (--buffer), and after which time
a ring is full at line rate (--ring with --link). --transfer shows how many frames a transfer of
NFS over UDP makes.`,
		Example: "  linerate calc burst --buffer 5k --transfer 8192\n" +
			"  linerate calc burst --ring 256 --link 10G --interval 125us",
	}}
	c.RunE = func(*cobra.Command, []string) error { return a.calculate(q) }
	c.bytes(&q.Buffer, "buffer", "memory of the NIC for receiving")
	c.whole(func(n int) { q.Descriptors = uint32(n) }, mostFrames, "ring", "descriptors of the receive ring")
	c.bytes(&q.Transfer, "transfer", "data of one transfer over UDP, such as rsize of NFS")
	c.rate(&q.Link, "link", "speed of the link")
	c.time(&q.Interval, "interval", "time between two looks at the ring")
	c.mtu(&q.MTUBytes)
	return c.Command
}

func (a *app) calcBus() *cobra.Command {
	var (
		q       calc.Bus
		payload unit.Bytes
	)
	c := calcFlags{&cobra.Command{
		Use:   "bus KIND",
		Short: "What a bus carries: isa, eisa, pci, pci-x, pcie or usb",
		Long: `Calculate the nominal and the usable rate of a bus, beside --link. KIND is isa, eisa, pci, pci-x,
pcie or usb. --width is bits, lanes of pcie (default 8), or the generation of usb. --clock is
the clock in hertz (33.3M), or the transfers per second of a pcie lane (8G).`,
		Example: "  linerate calc bus pcie --width 4 --clock 5G --link 25G\n" +
			"  linerate calc bus isa --width 8 --clock 6.7M --link 10M",
	}}
	c.RunE = func(_ *cobra.Command, args []string) error {
		q.Kind, q.PayloadBytes = args[0], int(payload)
		return a.calculate(q)
	}
	c.whole(func(n int) { q.Width = n }, math.MaxUint16, "width",
		"bits, lanes, or generation of usb (default: the usual one)")
	c.count(&q.Transfers, "clock", "clock in hertz, or transfers per second of a lane (default: the usual one)")
	c.bytes(&payload, "payload", "largest payload of a PCIe packet (default 256)")
	c.rate(&q.Link, "link", "speed of the link")
	c.mtu(&q.MTUBytes)
	return c.Command
}

func (a *app) calcPolling() *cobra.Command {
	var q calc.Polling
	c := calcFlags{&cobra.Command{
		Use:   "polling",
		Short: "The packets per second of a host that polls its NIC, and the burst that a link needs",
		Long: `Calculate the packets per second of a host that looks at its NIC --hz times a second and takes
at most --burst packets each time. The answer also has how long a packet waits, and the burst
that --link needs.`,
		Example: "  linerate calc polling --hz 1000 --burst 150 --link 1G",
	}}
	c.RunE = func(*cobra.Command, []string) error { return a.calculate(q) }
	c.count(&q.HZ, "hz", "looks per second (kern.hz)")
	c.whole(func(n int) { q.Burst = uint32(n) }, mostFrames, "burst",
		"packets of one look, at most (kern.polling.burst_max)")
	c.rate(&q.Link, "link", "speed of the link")
	c.mtu(&q.MTUBytes)
	return c.Command
}

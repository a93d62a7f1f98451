package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/report/words"
)

// cardText describes a NIC and its configuration, except for what has a column in the table of
// interfaces. Empty: nothing is known.
func cardText(i host.Interface) string {
	if i.Asleep {
		return "asleep: inspect does not wake it up"
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if b := i.Bus; b != nil {
		parts = append(parts, busText(b))
	}
	if c := i.Card; c != nil {
		if c.VirtualFunction != "" {
			add("a virtual function of %s", c.VirtualFunction)
		}
		if c.PayloadBytes > 0 && c.ReadRequestBytes > 0 {
			add("packets of %d bytes, reads of %d", c.PayloadBytes, c.ReadRequestBytes)
		}
		if c.FirmwareVersion != "" {
			add("firmware %s", c.FirmwareVersion)
		}
		if len(c.ASPM) > 0 {
			add("bus may sleep (ASPM %s)", strings.Join(c.ASPM, " "))
		}
		if best, ok := fasterMode(i); ok {
			add("could link in mode %s", best)
		}
		if c.Pause != nil {
			add("%s", pauseText(*c.Pause))
		}
		if c.EEE != nil && c.EEE.Enabled {
			add("EEE on%s", map[bool]string{true: " and in use"}[c.EEE.Active])
		}
		if c.FEC != nil && c.FEC.Active != "" {
			add("FEC %s", c.FEC.Active)
		}
		if c.RSS != nil && len(c.RSS.Shares) > 0 {
			add("%s", rssText(*c.RSS))
		}
		if on := onFlags(c.PrivateFlags); len(on) > 0 {
			add("private flags %s", strings.Join(on, " "))
		}
	}
	if text := interruptText(i.Interrupts); text != "" {
		parts = append(parts, text)
	}
	if text := steeringText(i); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// fasterMode returns the fastest mode of a NIC, and whether it is faster than the present link. A
// mode that the other end is known to lack does not count.
func fasterMode(i host.Interface) (mode string, ok bool) {
	if i.Card.Modes == nil || !i.Carrier || i.SpeedBitsPerSec <= 0 {
		return "", false
	}
	fastest := i.SpeedBitsPerSec
	for _, m := range i.Card.Modes.Supported {
		if partner := i.Card.Modes.Partner; len(partner) > 0 && !slices.Contains(partner, m) {
			continue
		}
		// "10000baseT/Full" begins with megabits per second.
		megabits, _, _ := strings.Cut(m, "base")
		if n, err := strconv.ParseFloat(megabits, 64); err == nil && n*1e6 > fastest {
			mode, fastest = m, n*1e6
		}
	}
	return mode, mode != ""
}

func busText(b *host.Bus) string {
	text := b.Kind
	switch {
	case b.SpeedGigatransfers > 0:
		text += fmt.Sprintf(" x%d at %g GT/s", b.Width, b.SpeedGigatransfers)
	case b.Width > 0:
		text += fmt.Sprintf(", %d bits", b.Width)
	}
	if b.CapacityBitsPerSec > 0 && b.MaxCapacityBitsPerSec > b.CapacityBitsPerSec {
		text += fmt.Sprintf(" (%s; card and slot support %s)", unit.BitRate(b.CapacityBitsPerSec),
			unit.BitRate(b.MaxCapacityBitsPerSec))
	}
	return text
}

func pauseText(p host.Pause) string {
	switch {
	case p.Rx && p.Tx:
		return "pause frames both ways"
	case p.Rx:
		return "obeys pause frames"
	case p.Tx:
		return "sends pause frames"
	}
	return "no pause frames"
}

// rssText returns over how many queues flows are spread, and whether a queue gets more than its
// part. The length of the table need not be a multiple of the number of queues, so a difference of
// one entry is even.
func rssText(r host.RSS) string {
	least, most := r.Shares[0].Entries, r.Shares[0].Entries
	for _, s := range r.Shares {
		least, most = min(least, s.Entries), max(most, s.Entries)
	}
	text := "RSS over " + unit.Counted(len(r.Shares), "queue")
	if most-least > 1 {
		text += fmt.Sprintf(", unevenly: %d to %d of %d entries", least, most, r.Entries)
	}
	return text
}

func onFlags(flags map[string]bool) []string {
	var on []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if flags[name] {
			on = append(on, name)
		}
	}
	return on
}

// interruptText returns how many interrupts a NIC has and which CPUs have served them since boot.
func interruptText(interrupts []host.Interrupt) string {
	if len(interrupts) == 0 {
		return ""
	}
	counts := make(map[int]uint64)
	var total uint64
	for _, i := range interrupts {
		for _, c := range i.Counts {
			counts[c.CPU] += c.Total
			total += c.Total
		}
	}
	text := unit.Counted(len(interrupts), "interrupt")
	if rate, ok := interruptRate(interrupts); ok {
		text += fmt.Sprintf(" (%s/s)", unit.FormatCount(rate))
	}
	if total == 0 {
		return text
	}
	busiest := slices.MaxFunc(slices.Sorted(maps.Keys(counts)),
		func(a, b int) int { return cmp.Compare(counts[a], counts[b]) })
	if len(counts) == 1 {
		return fmt.Sprintf("%s, all on CPU %d", text, busiest)
	}
	return fmt.Sprintf("%s on %d CPUs, %s of them on CPU %d", text, len(counts),
		words.Percent(float64(counts[busiest])/float64(total)), busiest)
}

// interruptRate returns the rate of all interrupts of a NIC together. False: they were not watched.
func interruptRate(interrupts []host.Interrupt) (sum float64, ok bool) {
	for _, i := range interrupts {
		if i.PerSec != nil {
			sum, ok = sum+*i.PerSec, true
		}
	}
	return sum, ok
}

// steeringText names what the kernel adds to the spreading of the NIC, where it is switched on.
func steeringText(i host.Interface) string {
	rps, rfs, xps := 0, 0, 0
	for _, q := range i.Queues {
		if strings.Trim(q.RPSCPUs, "0,") != "" {
			rps++
		}
		if q.RFSEntries > 0 {
			rfs++
		}
		if strings.Trim(q.XPSCPUs, "0,") != "" || strings.Trim(q.XPSRxQueues, "0,") != "" {
			xps++
		}
	}
	var parts []string
	for _, s := range []struct {
		n    int
		name string
	}{{rps, "RPS"}, {rfs, "RFS"}, {xps, "XPS"}} {
		if s.n > 0 {
			parts = append(parts, s.name+" on "+unit.Counted(s.n, "queue"))
		}
	}
	if n := i.NAPI; n != nil {
		if n.Threaded {
			parts = append(parts, "polls in threads")
		}
		if n.DeferHardIRQs > 0 {
			parts = append(parts, fmt.Sprintf("interrupts deferred %d rounds of %s", n.DeferHardIRQs,
				unit.FormatSeconds(n.GROFlushTimeoutSeconds)))
		}
	}
	return strings.Join(parts, ", ")
}

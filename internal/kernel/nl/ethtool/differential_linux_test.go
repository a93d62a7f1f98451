package ethtool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// agree compares what both sides report about one link, and returns the number of values compared.
func agree(t *testing.T, c world, name string) (n int) {
	t.Helper()
	n, differences := differ(t, c, name)
	for _, d := range differences {
		t.Error(d)
	}
	return n
}

// differ returns the number of values compared and what differs. It compares only values that both
// sides name: either may be older than the kernel.
func differ(t *testing.T, c world, name string) (n int, differences []string) {
	t.Helper()
	note := func(format string, a ...any) { differences = append(differences, fmt.Sprintf(format, a...)) }
	same := func(what string, ours, theirs any) {
		n++
		if a, b := fmt.Sprint(ours), fmt.Sprint(theirs); a != b {
			note("%s of %s: %s here, %s there", what, name, a, b)
		}
	}

	if m, err := c.Coalesce(name); err == nil {
		out, _ := nltest.OtherSays(t, "ethtool", "-c", name)
		for key, value := range nltest.Pairs(out) {
			// With adaptive moderation the numbers change all the time.
			if direction, _, _ := strings.Cut(key, "-"); m["adaptive-"+direction] != 0 {
				continue
			}
			// ethtool prints another name than it accepts.
			if v, ok := m[strings.ReplaceAll(key, "-frame-", "-frames-")]; ok {
				same(key, v, value)
			}
		}
	}
	rx, tx, rerr := c.Rings(name)
	if out, ok := nltest.OtherSays(t, "ethtool", "-g", name); ok && rerr == nil {
		most, now, _ := strings.Cut(out, "Current")
		for key, v := range map[string][2]uint32{"RX": {rx.Max, rx.Current}, "TX": {tx.Max, tx.Current}} {
			same("ring "+key, v,
				[2]uint32{nltest.Number(nltest.Pairs(most)[key]), nltest.Number(nltest.Pairs(now)[key])})
		}
	} else if !ok && rerr == nil {
		note("rings of %s: here %v %v, ethtool prints none", name, rx, tx)
	}
	ch, cerr := c.Channels(name)
	if out, ok := nltest.OtherSays(t, "ethtool", "-l", name); ok && cerr == nil {
		most, now, _ := strings.Cut(out, "Current")
		for key, v := range map[string][2]uint32{
			"RX": {ch.MaxRx, ch.Rx}, "TX": {ch.MaxTx, ch.Tx}, "Other": {ch.MaxOther, ch.Other},
			"Combined": {ch.MaxCombined, ch.Combined},
		} {
			same("channels "+key, v,
				[2]uint32{nltest.Number(nltest.Pairs(most)[key]), nltest.Number(nltest.Pairs(now)[key])})
		}
	} else if ok != (cerr == nil) {
		note("channels of %s: here %v, ethtool prints %q", name, cerr, out)
	}
	features, err := c.Features(name)
	if err != nil {
		note("features of %s: %v", name, err)
	}
	out, _ := nltest.OtherSays(t, "ethtool", "-k", name)
	for key, value := range nltest.Pairs(out) {
		if f, ok := features[key]; ok {
			words := strings.Fields(value)
			same(key, []any{f.On, f.Fixed}, []any{words[0] == "on", strings.Contains(value, "[fixed]")})
		}
	}
	return n, differences
}

// This package reads the same values that ethtool(8) prints for a veth, for a tap, and for every
// link of this machine, which the test only reads.
func TestNetnsAgreesWithOtherTools(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		nltest.AddTap(t, "tap0")
		nltest.Must(t, c.SetCoalesce("tap0", "rx-frames", 24))
		nltest.Must(t, c.SetFeature("v0", "tx-tcp-segmentation", false))
		n := 0
		for _, name := range []string{"v0", "tap0", "lo"} {
			n += agree(t, c, name)
		}
		if n < 80 {
			t.Errorf("only %d values compared", n)
		}
	})
	c := dialled(t)
	links, err := c.Links()
	nltest.Must(t, err)
	for _, l := range links {
		_, differences := differ(t, c, l.Name)
		// Other programs of this machine make links and take them away meanwhile.
		if now, err := c.LinkByName(l.Name); err != nil || now.Index != l.Index {
			continue
		}
		for _, d := range differences {
			t.Error(d)
		}
	}
}

package profile_test

import (
	"math"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/profile"
)

// routed is one run of a router: packets of some bytes each, and samples in the firewall.
func routed(firewall, size uint64) *profile.Profile {
	b := profile.NewBuilder("cpu-clock", true)
	add(b, 0, firewall, "idle", -1, "nft_do_chain", "nf_hook_slow", "ip_forward", "net_rx_action", "handle_softirqs")
	add(b, 0, 40, "idle", 0x19, "_raw_spin_unlock_irqrestore", "sock_def_readable", "tcp_v4_rcv", "handle_softirqs")
	add(b, 0, 10, "cc1", -1, "user:cc1")
	add(b, 0, 50, "idle", -1, "pv_native_safe_halt", "do_idle")
	const packets = 1000
	p := b.Finish(profile.Window{SampleSeconds: 0.005, PacketsBySlice: []float64{packets},
		BytesBySlice: []float64{float64(packets * size)}})
	n, bytes := uint64(packets), packets*size
	p.Period, p.PacketsTotal, p.BytesTotal, p.Duration = 5_000_000, &n, &bytes, 1
	return p
}

// TestMerge checks that runs add up, keep their stages, and that the intervals come from the
// variance between them.
func TestMerge(t *testing.T) {
	if profile.Merge(nil) != nil {
		t.Error("a profile of nothing")
	}
	one := routed(20, 100)
	var same, varied []*profile.Profile
	for i := range 10 {
		same = append(same, routed(20, 100))
		varied = append(varied, routed(uint64(2+4*i), 100)) // 20 on average
	}
	m, v := profile.Merge(same), profile.Merge(varied)
	if m.Busy != 700 || m.Samples != 1200 || m.Slices != 10 || m.Moved != 400 || *m.PacketsTotal != 10_000 ||
		m.Duration != 10 {
		t.Errorf("%d busy, %d samples, %d slices, %d moved, %d packets", m.Busy, m.Samples, m.Slices, m.Moved,
			*m.PacketsTotal)
	}
	for _, r := range one.Stages {
		got := m.StageRow(r.Name)
		if got == nil || math.Abs(got.Share-r.Share) > 1e-12 || math.Abs(*got.PerPacket-*r.PerPacket) > 1e-6 {
			t.Errorf("%s: %+v of ten equal runs, %+v of one", r.Name, got, r)
		}
	}
	wide, narrow := v.StageRow("netfilter"), m.StageRow("netfilter")
	if *wide.PerPacketHigh-*wide.PerPacketLow < 2*(*narrow.PerPacketHigh-*narrow.PerPacketLow) {
		t.Errorf("runs that differ have the interval %v to %v, equal ones %v to %v", *wide.PerPacketLow,
			*wide.PerPacketHigh, *narrow.PerPacketLow, *narrow.PerPacketHigh)
	}
	c := profile.Compare(m, profile.Merge([]*profile.Profile{routed(60, 100), routed(58, 100), routed(62, 100),
		routed(60, 100)}))
	for _, r := range c.Stages {
		if r.Differs != (r.Name == "netfilter") {
			t.Errorf("%+v", r)
		}
	}
}

// TestMergeTrimmed checks that samples whose stacks another host left out stay in the sums.
func TestMergeTrimmed(t *testing.T) {
	whole, trimmed := routed(20, 100), routed(20, 100)
	trimmed.Trim(1)
	m := profile.Merge([]*profile.Profile{trimmed, trimmed})
	if m.Busy != 2*whole.Busy || m.StacksCut != 2*trimmed.StacksCut {
		t.Errorf("%d busy samples of two runs with %d, %d cut", m.Busy, whole.Busy, m.StacksCut)
	}
	was := make(map[string]uint64)
	for _, f := range whole.Functions {
		was[f.Name] = f.Samples
	}
	for _, f := range m.Functions {
		if f.Samples != 2*was[f.Name] {
			t.Errorf("%s has %d samples, one run had %d", f.Name, f.Samples, was[f.Name])
		}
	}
	for _, rows := range [][]profile.Row{m.Stages, m.Work, m.Contexts, m.Functions} {
		sum := 0.0
		for _, r := range rows {
			sum += r.Share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("the shares of %s and %d others add up to %v", rows[0].Name, len(rows)-1, sum)
		}
	}
}

// TestCompareSizes checks that profiles with packets of other sizes are compared by the byte: with
// GRO one packet stands for many.
func TestCompareSizes(t *testing.T) {
	before, after := routed(20, 1500), routed(20, 60_000)
	c := profile.Compare(before, after)
	if c.Unit != profile.UnitPerKB || len(c.Warnings) == 0 || !strings.Contains(c.Warnings[0], "per kilobyte") {
		t.Fatalf("%s: %q", c.Unit, c.Warnings)
	}
	for _, r := range c.Stages {
		row := before.StageRow(r.Name)
		if want := *row.PerByte * 1000; math.Abs(r.Before-want) > 1e-9*want || math.Abs(r.After*40-r.Before) > 1e-6 {
			t.Errorf("%+v, want %v before", r, want)
		}
	}
	if c := profile.Compare(before, routed(20, 1510)); c.Unit != profile.UnitPerPacket || len(c.Warnings) > 0 {
		t.Errorf("%s: %q", c.Unit, c.Warnings)
	}
}

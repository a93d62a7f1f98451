package profile_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/linerate/linerate/internal/profile"
)

// add adds one stack of kernel functions, leaf first.
func add(b *profile.Builder, slice int, count uint64, process string, offset int64, names ...string) {
	var frames []int
	for _, n := range names {
		kind := profile.KernelFrame
		if n, user := strings.CutPrefix(n, "user:"); user {
			frames = append(frames, b.Frame(profile.Frame{Name: n, Kind: profile.UserFrame}))
			continue
		}
		frames = append(frames, b.Frame(profile.Frame{Name: n, Kind: kind}))
	}
	b.Add(profile.Seen{Frames: frames, Offset: offset, Slice: slice, Process: process, Count: count})
}

func TestStageOf(t *testing.T) {
	for name, want := range map[string]string{
		"tcp_v4_rcv": "TCP rx", "tcp_write_xmit": "TCP tx", "nft_do_chain": "netfilter", "nft_some_new_eval": "netfilter",
		"__nf_conntrack_find_get": "conntrack/NAT", "_copy_to_iter": "copy", "finish_task_switch.isra.0": "sched",
		"kmem_cache_alloc_noprof": "memory alloc", "tcp_clean_rtx_queue.constprop.0": "TCP rx",
		"bpf_prog_6deef7357e7b4530_filter": "BPF", "dev_gro_receive": "GRO", "vsnprintf": profile.StageOther,
		"ext4_readdir": "files", "skb_release_data": "skb alloc/free", "pv_native_safe_halt": "idle",
		"m_freem": "skb alloc/free", "_mtx_lock_sleep": "lock",
	} {
		if got := profile.StageOf(name); got != want {
			t.Errorf("%s is in %q, want %q", name, got, want)
		}
	}
}

// TestTable checks the form of the table: functions below a stage with its source, none of them
// twice.
func TestTable(t *testing.T) {
	b, err := os.ReadFile("stages.txt")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]bool{"6.18": true, "6.1-module": true, "-": true, "5.4": true, "FreeBSD": true, "illumos": true}
	seen := make(map[string]bool)
	stage := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if name, source, heads := strings.Cut(line, "\t"); heads {
			if name == "" || !sources[source] {
				t.Errorf("heading %q", line)
			}
			stage = name
			continue
		}
		if stage == "" || line == "" || strings.ContainsAny(line, " #") {
			t.Errorf("function %q of stage %q", line, stage)
		}
		if seen[line] {
			t.Errorf("%s is there twice", line)
		}
		seen[line] = true
		if got := profile.StageOf(line); got != stage {
			t.Errorf("%s is looked up as %s, which is in %q, want %q", line, profile.Plain(line), got, stage)
		}
	}
	if len(seen) < 1000 {
		t.Errorf("only %d functions", len(seen))
	}
}

// TestBilling checks both axes, idle by leaf, and own and borrowed time.
func TestBilling(t *testing.T) {
	b := profile.NewBuilder("cpu-clock", true)
	// A router: packets of the idle task are work; its halt is not.
	add(b, 0, 40, "idle", -1, "nft_meta_get_eval", "nft_do_chain", "nf_hook_slow", "ip_forward", "net_rx_action",
		"handle_softirqs", "do_idle")
	add(b, 0, 50, "idle", -1, "pv_native_safe_halt", "default_idle_call", "do_idle")
	// Memory inside TCP: the work is memory, the place is TCP.
	add(b, 1, 20, "iperf", -1, "kmem_cache_free", "tcp_ack", "tcp_v4_rcv", "handle_softirqs", "do_softirq", "tcp_sendmsg")
	add(b, 1, 10, "iperf", -1, "_copy_from_iter", "tcp_sendmsg_locked", "tcp_sendmsg", "do_syscall_64")
	add(b, 1, 5, "cc1", -1, "user:cc1")
	add(b, 1, 3, "cc1", -1, "vsnprintf", "do_exit")
	add(b, 1, 2, "ksoftirqd/0", -1, "tcp_v4_rcv", "net_rx_action", "handle_softirqs", "run_ksoftirqd", "kthread")
	p := b.Finish(profile.Window{SampleSeconds: 0.005, PacketsBySlice: []float64{100, 100}})
	if p.Samples != 130 || p.Busy != 80 || p.Kernel != 75 || p.Unclassed != 3 {
		t.Errorf("%d samples, %d busy, %d kernel, %d unclassed", p.Samples, p.Busy, p.Kernel, p.Unclassed)
	}
	for name, want := range map[string]uint64{"netfilter": 40, "TCP rx": 22, "TCP tx": 10, profile.StageUser: 5,
		profile.StageOther: 3} {
		if r := p.StageRow(name); r == nil || r.Samples != want {
			t.Errorf("stage %s: %+v, want %d", name, r, want)
		}
	}
	for name, want := range map[string]uint64{"protocol": 42, "memory": 20, "copy": 10, "program": 5, "other": 3} {
		if r := p.WorkRow(name); r == nil || r.Samples != want {
			t.Errorf("work %s: %+v, want %d", name, r, want)
		}
	}
	for _, list := range [][]profile.Row{p.Stages, p.Work, p.Contexts, p.Functions} {
		sum := 0.0
		for _, r := range list {
			sum += r.Share
			if !(r.ShareLow <= r.Share && r.Share <= r.ShareHigh) {
				t.Errorf("%s: %v is outside of %v to %v", r.Name, r.Share, r.ShareLow, r.ShareHigh)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("shares of %s and others sum to %v", list[0].Name, sum)
		}
	}
	for _, process := range p.Processes {
		want := map[string][2]uint64{"idle": {0, 40}, "iperf": {10, 20}, "cc1": {8, 0}, "ksoftirqd/0": {2, 0}}[process.Name]
		if process.Own != want[0] || process.Borrowed != want[1] {
			t.Errorf("%s: own %d, borrowed %d, want %v", process.Name, process.Own, process.Borrowed, want)
		}
	}
	if r := p.StageRow("netfilter"); math.Abs(*r.PerPacket-40*0.005*1e9/200) > 1e-6 {
		t.Errorf("netfilter costs %v ns per packet", *r.PerPacket)
	}
}

// TestMoved checks what a timer cannot see: unlocks always, other functions at one offset only, and
// nothing where the event is no timer.
func TestMoved(t *testing.T) {
	fill := func(timer bool) *profile.Profile {
		b := profile.NewBuilder("x", timer)
		add(b, 0, 30, "a", 0x19, "_raw_spin_unlock_irqrestore", "try_to_wake_up", "sock_def_readable")
		add(b, 0, 20, "a", 0x72, "handle_softirqs", "__irq_exit_rcu")
		add(b, 0, 6, "a", 0xd2, "handle_softirqs", "__irq_exit_rcu")
		add(b, 0, 9, "a", 0x93, "finish_task_switch.isra.0", "__schedule")
		add(b, 0, 4, "a", 0x19, "_raw_spin_unlock_irqrestore")
		return b.Finish(profile.Window{})
	}
	own := func(p *profile.Profile, name string) uint64 {
		for _, f := range p.Functions {
			if f.Name == name {
				return f.Samples
			}
		}
		return 0
	}
	p := fill(true)
	if p.Moved != 50 || own(p, "try_to_wake_up") != 30 || own(p, "__irq_exit_rcu") != 20 ||
		own(p, "handle_softirqs") != 6 {
		t.Errorf("moved %d: %+v", p.Moved, p.Functions)
	}
	if own(p, "finish_task_switch") != 9 {
		t.Error("nine samples at one offset were taken for a proof")
	}
	if own(p, "_raw_spin_unlock_irqrestore") != 4 {
		t.Error("a sample without a caller has nowhere to go")
	}
	if p := fill(false); p.Moved != 0 || own(p, "_raw_spin_unlock_irqrestore") != 34 {
		t.Errorf("counters of the processor see code with interrupts off: moved %d", p.Moved)
	}
}

func TestSymbols(t *testing.T) {
	const list = "ffffffff81000000 T _text\nffffffff81000000 t srso_alias_untrain_ret\n" +
		"ffffffff81000100 t __pfx_tcp_ack\nffffffff81000110 t tcp_ack\nffffffff81000400 D jiffies\n" +
		"ffffffff81000500 T tcp_v4_rcv\nffffffffc0000000 t mlx5e_napi_poll\t[mlx5_core]\n" +
		"ffffffffc0001000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n"
	s, err := profile.ReadSymbols(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	s.Add(0xffffffffc0100000, 0x80, "bpf_prog_1234_new")
	for _, c := range []struct {
		at           uint64
		name, module string
		offset       uint64
		ok           bool
	}{
		{0xffffffff81000000, "_text", "", 0, true},
		{0xffffffff81000450, "tcp_ack", "", 0x340, true},
		{0xffffffff81000510, "tcp_v4_rcv", "", 0x10, true},
		{0xffffffffc0000123, "mlx5e_napi_poll", "mlx5_core", 0x123, true},
		{0xffffffffc0100010, "bpf_prog_1234_new", "bpf", 0x10, true},
		{0xffffffff80000000, "", "", 0, false},
		{0xffffffffc0900000, "", "", 0, false},
	} {
		name, module, offset, ok := s.Resolve(c.at)
		if name != c.name || module != c.module || offset != c.offset || ok != c.ok {
			t.Errorf("%#x: %q %q %#x %v, want %+v", c.at, name, module, offset, ok, c)
		}
	}
	if _, err := profile.ReadSymbols(strings.NewReader("0000000000000000 T _text\n" +
		"0000000000000000 t tcp_ack\n")); !errors.Is(err, profile.ErrHidden) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("hidden addresses: %v", err)
	}
	if _, err := profile.ReadSymbols(strings.NewReader("zzz\n")); err == nil {
		t.Error("garbage is accepted")
	}
}

// simulate returns a profile of slices in which a function has the given share on average. Within a
// slice, samples come in bursts, so that counts vary more than independent ones.
func simulate(r *rand.Rand, share, burst float64, slices int) *profile.Profile {
	b := profile.NewBuilder("cpu-clock", true)
	packets := make([]float64, slices)
	for s := range slices {
		// A share of its own for each slice, around the true one.
		own := min(1, max(0, share*(1+burst*r.NormFloat64())))
		n, k := uint64(100), uint64(0)
		for range n {
			if r.Float64() < own {
				k++
			}
		}
		add(b, s, k, "a", -1, "tcp_v4_rcv", "net_rx_action")
		add(b, s, n-k, "a", -1, "user:a")
		packets[s] = 1000
	}
	return b.Finish(profile.Window{SampleSeconds: 0.005, PacketsBySlice: packets, Slices: slices})
}

// TestIntervals checks that intervals hold the truth as often as they promise, also where samples
// come in bursts: planted shares of 10, 30 and 60 %, and one with few samples.
func TestIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 1))
	for _, share := range []float64{0.005, 0.1, 0.3, 0.6} {
		for _, burst := range []float64{0, 0.3} {
			held, heldPrice, runs := 0, 0, 500
			for range runs {
				row := simulate(r, share, burst, 40).StageRow("TCP rx")
				if row == nil { // not seen at all
					continue
				}
				if row.ShareLow <= share && share <= row.ShareHigh {
					held++
				}
				price := share * 100 * 0.005 * 1e9 / 1000
				if *row.PerPacketLow <= price && price <= *row.PerPacketHigh {
					heldPrice++
				}
			}
			if held < runs*93/100 || heldPrice < runs*93/100 {
				t.Errorf("share %v, bursts %v: %d of %d intervals hold the share, %d the price", share, burst, held, runs,
					heldPrice)
			}
		}
	}
}

// TestCompare checks that two profiles of the same load differ in at most one of twenty
// comparisons, that bursts do not change that, and that a planted difference is found.
func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 2))
	for _, burst := range []float64{0, 0.3} {
		alarms, runs := 0, 300
		for range runs {
			c := profile.Compare(simulate(r, 0.2, burst, 40), simulate(r, 0.2, burst, 40))
			if c.Unit != profile.UnitPerPacket {
				t.Fatal(c.Unit)
			}
			for _, row := range c.Stages {
				if row.Name == "TCP rx" && row.Differs {
					alarms++
				}
			}
		}
		if alarms > runs*7/100 {
			t.Errorf("bursts %v: %d of %d comparisons of the same load differ", burst, alarms, runs)
		}
	}
	c := profile.Compare(simulate(r, 0.2, 0, 40), simulate(r, 0.3, 0, 40))
	if !c.Differs || c.Stages[0].Difference == 0 || !c.Stages[0].Differs {
		t.Errorf("10 points more are not seen: %+v", c.Stages)
	}
}

// TestBounded checks that stacks without end do not fill the memory, and that no sample is lost.
func TestBounded(t *testing.T) {
	b := profile.NewBuilder("cpu-clock", true)
	leaf := b.Frame(profile.Frame{Name: "tcp_ack"})
	frames := make([]int, 1000)
	for i := range frames {
		frames[i] = b.Frame(profile.Frame{Name: "f" + string(rune('A'+i))})
	}
	n := uint64(0)
	for i := range 110_000 {
		b.Add(profile.Seen{Frames: []int{leaf, frames[i%1000], frames[i/1000]}, Offset: -1, Count: 1})
		n++
	}
	p := b.Finish(profile.Window{})
	if p.Samples != n || p.StacksCut == 0 || len(p.Stacks) > 100_001 {
		t.Errorf("%d of %d samples, %d cut, %d stacks", p.Samples, n, p.StacksCut, len(p.Stacks))
	}
}

// TestSymbolsInAnyOrder reads lists of which parts are not by address, in pieces of any size, and
// compares every name with the one that a plain reader finds.
func TestSymbolsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 3))
	for round := range 50 {
		type line struct {
			address uint64
			name    string
			local   bool
		}
		var text strings.Builder
		want := map[uint64]line{}
		address := uint64(0xffffffff81000000)
		for i := range 300 {
			switch {
			case i > 200 && r.IntN(3) == 0: // modules and programs, behind
				address = 0xffffffffc0000000 + uint64(r.IntN(100))*64
			case i > 290: // and one that the kernel never lists so
				address = 0xffffffff81000000 + uint64(r.IntN(100))*16
			case r.IntN(4) > 0: // else one more name of the same address
				address += 64
			}
			one := line{address, strings.Repeat("f", 1+r.IntN(5)) + strconv.Itoa(i), r.IntN(2) == 0}
			kind := "T"
			if one.local {
				kind = "t"
			}
			fmt.Fprintf(&text, "%016x %s %s\n%016x t __pfx_%s\n", one.address, kind, one.name, one.address-16, one.name)
			old, known := want[address]
			if !known || old.local && !one.local || old.local == one.local && len(one.name) < len(old.name) {
				want[address] = one
			}
		}
		s, err := profile.ReadSymbols(iotest.OneByteReader(strings.NewReader(text.String())))
		if round%2 == 0 {
			s, err = profile.ReadSymbols(strings.NewReader(strings.TrimSuffix(text.String(), "\n")))
		}
		if err != nil || s.Len() != len(want) {
			t.Fatalf("%d functions, %v, want %d", s.Len(), err, len(want))
		}
		for at, one := range want {
			if name, _, _, ok := s.Resolve(at); !ok || name != one.name {
				t.Errorf("%#x is %q, want %q", at, name, one.name)
			}
		}
	}
}

// BenchmarkReadSymbols reads a list as long as that of a kernel.
func BenchmarkReadSymbols(b *testing.B) {
	var text strings.Builder
	for i := range 61_000 {
		fmt.Fprintf(&text, "%016x t __pfx_function_of_a_kernel_%d\n%016x T function_of_a_kernel_%d\n",
			uint64(0xffffffff81000000)+64*uint64(i), i, uint64(0xffffffff81000010)+64*uint64(i), i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := profile.ReadSymbols(strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCheck refuses profiles that another host or a file may have, and that no text can show.
func TestCheck(t *testing.T) {
	one := 1.0
	for _, p := range []*profile.Profile{
		{Stacks: []profile.Stack{{Functions: []int{0}}}},
		{Stacks: []profile.Stack{{}}},
		{Stages: []profile.Row{{Name: "x", Share: -1}}},
		{Work: []profile.Row{{Name: "x", Share: 1e18}}},
		{Functions: []profile.Row{{Name: "x", PerPacket: &one}}},
		{Contexts: []profile.Row{{Name: "x", PerPacket: &one, PerPacketLow: &one}}},
		{Exact: &profile.Exact{}},
	} {
		if p.Check() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	b := profile.NewBuilder("cpu-clock", true)
	add(b, 0, 10, "idle", -1, "nft_do_chain", "handle_softirqs")
	if err := b.Finish(profile.Window{SampleSeconds: 1, PacketsBySlice: []float64{1}}).Check(); err != nil {
		t.Error(err)
	}
}

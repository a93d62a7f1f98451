package record

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/bpf"
	"github.com/linerate/linerate/internal/kernel/perf"
	"github.com/linerate/linerate/internal/profile"
)

// TestFunctionsAreAskedOnce checks that the kernel is asked once for each function, that a program
// of BPF which the kernel announced has its announced name, and that a refusal is kept.
func TestFunctionsAreAskedOnce(t *testing.T) {
	asked := 0
	refused := errors.New("refused")
	f := &functions{listed: &profile.Symbols{}, ask: func(address uint64) (bpf.Function, bool, error) {
		asked++
		switch {
		case address >= 0x9000:
			return bpf.Function{}, false, refused
		case address < 0x1000:
			return bpf.Function{}, false, nil
		}
		one := bpf.Function{Name: "of_" + string(rune('a'+address>>12)), Start: address &^ 0xfff, Size: 0x800}
		if address&0xfff >= 0x800 { // a longer program of the same place
			one.Name, one.Size = one.Name+"_long", 0x1000
		}
		return one, true, nil
	}}
	for _, one := range []struct {
		address uint64
		name    string
		offset  uint64
		asked   int
	}{
		{0x3010, "of_d", 0x10, 1}, {0x3000, "of_d", 0, 1}, {0x37ff, "of_d", 0x7ff, 1}, {0x1001, "of_b", 1, 2},
		{0x5000, "of_f", 0, 3}, {0x37ff, "of_d", 0x7ff, 3}, {0x17ff, "of_b", 0x7ff, 3}, {0x20, "", 0, 4},
		{0x9000, "", 0, 5}, {0x1900, "of_b_long", 0x900, 6}, {0x1001, "of_b_long", 1, 6}, {0x3001, "of_d", 1, 6},
	} {
		name, _, offset, ok := f.resolve(one.address)
		if name != one.name || offset != one.offset || ok != (one.name != "") || asked != one.asked {
			t.Errorf("%#x is %q and %#x after %d questions, want %q and %#x after %d", one.address, name, offset, asked,
				one.name, one.offset, one.asked)
		}
	}
	if !errors.Is(f.err, refused) {
		t.Errorf("the refusal is %v", f.err)
	}
	if len(f.known) != 3 {
		t.Errorf("%d functions are known: %+v", len(f.known), f.known)
	}
	f.listed.Add(0x3000, 0x40, "bpf_prog_new")
	if name, module, _, _ := f.resolve(0x3010); name != "bpf_prog_new" || module != "bpf" {
		t.Errorf("a program that came later is %q of %q", name, module)
	}
}

// TestShows checks that a list counts as hidden only where no function has an address.
func TestShows(t *testing.T) {
	for list, want := range map[string]bool{
		"": false,
		"0000000000000000 T _text\n0000000000000000 t run [bpf]\n":           false,
		"ffffffff81000000 D data\n0000000000000000 T _text\n":                false,
		"0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n":   true,
		"0000000000000000 T _text\nffffffffc0000000 w weak\t[some_module]\n": true,
	} {
		if got := shows(strings.NewReader(list)); got != want {
			t.Errorf("%q shows addresses: %v", list, got)
		}
	}
}

// TestPeriods checks that the rate follows the cost of a sample, so that samples take less than
// 0.8 % of a CPU, and that every period is a prime.
func TestPeriods(t *testing.T) {
	for _, one := range []struct {
		rate int
		cost time.Duration
		want float64 // per second
	}{
		{0, 0, 997}, {0, 3 * time.Microsecond, 997}, {0, 9 * time.Microsecond, 499}, {0, 19 * time.Microsecond, 199},
		{0, 79 * time.Microsecond, 97}, {0, time.Millisecond, 49}, {250, time.Millisecond, 250},
	} {
		period := periodOf(perf.CPUClock(), one.rate, one.cost)
		if got := 1e9 / float64(period); got > one.want || got < one.want-0.1 {
			t.Errorf("%v samples a second for %+v", got, one)
		}
		if one.rate == 0 && one.cost < 100*time.Microsecond && one.cost.Seconds()*1e9/float64(period) > 0.008 {
			t.Errorf("samples of %v each %d ns take more than 0.8 %%", one.cost, period)
		}
		prime(t, period)
	}
	for _, e := range perf.Events() {
		if !e.Timer {
			prime(t, periodOf(e, 0, 0))
		}
	}
}

func prime(t *testing.T, n uint64) {
	t.Helper()
	for d := uint64(2); d*d <= n; d++ {
		if n%d == 0 {
			t.Errorf("period %d is %d times %d", n, d, n/d)
			return
		}
	}
}

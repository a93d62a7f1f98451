package procfs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The names that the tests select; the last is in no file.
var picked = []string{"Tcp.CurrEstab", "Tcp.RetransSegs", "Udp.InErrors", "TcpExt.TCPTimeouts", "Udp6.RcvbufErrors",
	"Tcp.Nothing"}

// quick reads with the quick readers, under the names of the slow ones.
func quick(which int, c *Columns, in []byte) (map[string]uint64, error) {
	found := make(map[string]uint64)
	var err error
	switch which {
	case 0:
		values, known := make([]uint64, len(picked)), make([]bool, len(picked))
		err = c.Read(in, values, known)
		for i, name := range picked {
			if known[i] {
				found[name] = values[i]
			}
		}
	case 1:
		err = EachStat(in, func(cpu int, ticks *[StatModes]uint64) {
			found[fmt.Sprint("cpu.", cpu)] = ticks[TicksSystem]*1000 + ticks[TicksSoftIRQ]
		}, func(number int, n uint64) {
			if n > 0 {
				found[fmt.Sprint("irq.", number)] = n
			}
		}, func(n uint64) { found["ctxt"] = n })
	case 2:
		err = EachSoftnet(in, func(l *SoftnetLine) {
			found[fmt.Sprintf("softnet.%d.processed", l.CPU)] = l.Processed
			found[fmt.Sprintf("softnet.%d.dropped", l.CPU)] = l.Dropped
			found[fmt.Sprintf("softnet.%d.time_squeeze", l.CPU)] = l.TimeSqueeze
		})
	case 3:
		_, err = EachSoftIRQ(in, nil, func(receive bool, cpu int, n uint64) {
			name := fmt.Sprint("softirq.NET_TX.", cpu)
			if receive {
				name = fmt.Sprint("softirq.NET_RX.", cpu)
			}
			if n > 0 {
				found[name] = n
			}
		})
	}
	return found, err
}

// slow reads the same with the parsers of whole files.
func slow(which int, in []byte) (map[string]uint64, error) {
	set := NewCounts(0)
	found := make(map[string]uint64)
	var err error
	switch which {
	case 0:
		err = ParseSNMP(in, set)
		for _, name := range picked {
			if n, ok := set.Values[name]; ok {
				found[name] = n
			}
		}
		return found, err
	case 1:
		var cpus []CPUTimes
		cpus, err = ParseStat(in, set)
		for _, c := range cpus {
			if c.CPU >= 0 {
				set.Put(uint64(c.System/userTick+0.5)*1000+uint64(c.SoftIRQ/userTick+0.5), fmt.Sprint("cpu.", c.CPU))
			}
		}
		for name, n := range set.Values {
			if name[0] != 's' {
				found[name] = n
			}
		}
		return found, err
	case 2:
		err = ParseSoftnet(in, set)
		for _, l := range SoftnetLines(in) {
			found[fmt.Sprintf("softnet.%d.processed", l.CPU)] = l.Processed
			found[fmt.Sprintf("softnet.%d.dropped", l.CPU)] = l.Dropped
			found[fmt.Sprintf("softnet.%d.time_squeeze", l.CPU)] = l.TimeSqueeze
		}
		return found, err
	}
	err = ParseSoftIRQs(in, set)
	return set.Values, err
}

var quickSeeds = []string{
	"Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 3 17\n\nUdp: InErrors\nUdp: 9",
	"cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu3 1 2 3 4\nintr 9 0 2 3\nctxt 77\nsoftirq 1 2\n",
	"1 2 3 0 0 0 0 0 0 4 5 6 0\n\nffffffff 1 1 0 0 0 0 0 0 1 1 0 2 0 0\n",
	"                    CPU0       CPU2\n      NET_TX:          0          5\n      NET_RX:          7          8\n",
}

func TestQuickReadersAgree(t *testing.T) {
	for which, in := range quickSeeds {
		want, err := slow(which, []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		c := NewColumns(picked...)
		for range 2 { // the second time with the remembered names
			got, err := quick(which, c, []byte(in))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%q: %v (-want +got):\n%s", in, err, diff)
			}
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	for _, file := range []string{"/proc/net/snmp", "/proc/net/netstat"} {
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := slow(0, in)
		got, err2 := quick(0, NewColumns(picked...), in)
		if diff := cmp.Diff(want, got); errors.Join(err, err2) != nil || diff != "" || len(got) == 0 {
			t.Errorf("%s: %v, %v (-want +got):\n%s", file, err, err2, diff)
		}
	}
}

// Read follows a kernel that changes its columns between two readings, and reports a vanished name
// as unknown.
func TestColumnsFollowTheFile(t *testing.T) {
	c := NewColumns("Tcp.A", "Tcp.B")
	values, known := make([]uint64, 2), make([]bool, 2)
	for _, step := range []struct {
		in   string
		want map[string]uint64
		bad  bool
	}{
		{"Tcp: A B\nTcp: 1 2\n", map[string]uint64{"A": 1, "B": 2}, false},
		{"Tcp: X B A\nTcp: 9 3 4\n", map[string]uint64{"A": 4, "B": 3}, false},
		{"Tcp: B\nTcp: 5\n", map[string]uint64{"B": 5}, false},
		{"Tcp: A B\nTcp: 1\n", nil, true},
		{"Tcp: A B\nTcp: 1 2 3\n", nil, true},
		{"Tcp: A B\nUdp: 1 2\n", nil, true},
		{"Tcp: A B\nTcp: -1 2\n", map[string]uint64{"B": 2}, false},
	} {
		err := c.Read([]byte(step.in), values, known)
		if step.bad {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%q: %v", step.in, err)
			}
			continue
		}
		got := make(map[string]uint64)
		for i, name := range []string{"A", "B"} {
			if known[i] {
				got[name] = values[i]
			}
		}
		if diff := cmp.Diff(step.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", step.in, err, diff)
		}
	}
}

func TestRows(t *testing.T) {
	c := NewColumns("MemTotal", "Udp6InErrors")
	values, known := make([]uint64, 2), make([]bool, 2)
	if err := c.ReadRows([]byte("MemTotal:       24684084 kB\nMemFree: x\n"), values, known); err != nil ||
		values[0] != 24684084 || !known[0] || known[1] {
		t.Errorf("%v %v %v", values, known, err)
	}
	if err := c.ReadRows([]byte("Udp6InErrors                    \t7\n"), values, known); err != nil ||
		values[1] != 7 || known[0] {
		t.Errorf("%v %v %v", values, known, err)
	}
	if err := c.ReadRows([]byte("MemTotal: much\n"), values, known); !errors.Is(err, ErrFormat) {
		t.Errorf("no number: %v", err)
	}
}

// For any bytes, no reader panics and errors have a kind; tables of names and numbers are read as
// the parser of whole files reads them.
func FuzzQuick(f *testing.F) {
	for which, seed := range quickSeeds {
		f.Add(which, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, which int, in []byte) {
		which = int(uint(which) % 4)
		got, err := quick(which, NewColumns(picked...), in)
		if err != nil && !errors.Is(err, ErrFormat) {
			t.Errorf("error without a kind: %v", err)
		}
		want, slowErr := slow(which, in)
		if which != 0 || err != nil && slowErr != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (slowErr == nil) {
			t.Errorf("quick %v, slow %v (-want +got):\n%s", err, slowErr, diff)
		}
	})
}

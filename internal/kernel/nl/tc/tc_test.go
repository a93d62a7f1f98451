package tc_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/nl/tc"
)

// recorded holds the options of the messages that tc(8) of iproute2 6.1 sends for a command line,
// captured at sendmsg(2) on a little-endian machine.
var recorded = []struct {
	kind, command, hex string
	want               map[string]string
}{
	{
		"fq", "limit 5000 flow_limit 50 quantum 4000 initial_quantum 20000 maxrate 800mbit buckets 512 orphan_mask " +
			"511 low_rate_threshold 1mbit " +
			"ce_threshold 4ms refill_delay 30ms timer_slack 20us horizon 5s horizon_cap nopacing",
		"08000800090000000800010088130000080002003200000008000300a00f000008000400204e00000800050000000000" +
			"0800070000e1f50508000b0048e80100" +
			"080009003075000008000a00ff01000008000c00a00f000008000d00204e000008000e00404b4c0005000f0000000000",
		map[string]string{
			"limit": "5000", "flow_limit": "50", "quantum": "4000", "initial_quantum": "20000", "pacing": "off",
			"maxrate": "800000000", "buckets": "512",
			"refill_delay": "30000", "orphan_mask": "511", "low_rate_threshold": "1000000", "ce_threshold": "4000",
			"timer_slack": "20000",
			"horizon":     "5000000", "horizon_drop": "off",
		},
	},
	{
		"fq_codel", "limit 1000 flows 256 target 7ms interval 150ms quantum 300 noecn ce_threshold 2ms " +
			"memory_limit 8Mb drop_batch 32",
		"08000200e80300000800050000010000080006002c01000008000300f049020008000100581b00000800040000000000" +
			"08000700d00700000800090000008000" +
			"0800080020000000",
		map[string]string{
			"limit": "1000", "flows": "256", "target": "7000", "interval": "150000", "quantum": "300", "ecn": "off",
			"ce_threshold": "2000",
			"memory_limit": "8388608", "drop_batch": "32",
		},
	},
	{
		"cake", "bandwidth 95mbit diffserv4 dual-srchost rtt 50ms overhead 44 mpu 84 atm nat wash ingress " +
			"ack-filter no-split-gso memlimit 8mb " +
			"fwmark 0xff autorate-ingress",
		"0c000200b832b50000000000080003000100000008000400010000000800050005000000080006002c00000008000e00" +
			"540000000800070050c3000008000800" +
			"c4090000080009000100000008000a000000800008001200ff00000008000b000100000008000d000100000008001100" +
			"0000000008000f000100000008001000" +
			"01000000",
		map[string]string{
			"bandwidth": "95000000", "diffserv": "diffserv4", "atm": "atm", "flowmode": "dual-srchost",
			"overhead": "44", "rtt": "50000", "target": "2500",
			"autorate-ingress": "on", "memlimit": "8388608", "nat": "on", "wash": "on", "mpu": "84", "ingress": "on",
			"ack-filter": "ack-filter",
			"split-gso":  "off", "fwmark": "255",
		},
	},
	{
		"cake", "unlimited besteffort flowblind raw noatm nonat nowash egress no-ack-filter split-gso",
		"0c0002000000000000000000080003000300000008000400000000000800050000000000080006000000000008000c00" +
			"00000000080009000000000008000b00" +
			"0000000008000d0000000000080011000100000008000f00000000000800100000000000",
		map[string]string{
			"bandwidth": "0", "diffserv": "besteffort", "atm": "noatm", "flowmode": "flowblind", "overhead": "raw",
			"autorate-ingress": "off", "nat": "off",
			"wash": "off", "split-gso": "on", "ingress": "off", "ack-filter": "no-ack-filter",
		},
	},
	{"pfifo", "limit 77", "4d000000", map[string]string{"limit": "77"}},
	{"bfifo", "limit 77000", "c82c0100", map[string]string{"limit": "77000"}},
}

func options(t *testing.T, s string) []byte {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the recording is little-endian")
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The options that tc(8) sends are read as typed, parameter by parameter.
func TestGetReadsWhatTcSends(t *testing.T) {
	for _, r := range recorded {
		got := make(map[string]string)
		for _, name := range tc.Parameters(r.kind) {
			v, err := tc.Get(r.kind, name, options(t, r.hex))
			if err == nil {
				got[name] = v
			} else if !errors.Is(err, tc.ErrAbsent) {
				t.Errorf("%s %s: %v", r.kind, name, err)
			}
		}
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("tc qdisc replace dev X root %s %s (-want +got):\n%s", r.kind, r.command, diff)
		}
	}
}

// The output of Change is, byte for byte, the attribute that tc(8) sends. Times of CoDel differ on
// purpose: see TestCodelTimesComeBack.
func TestChangeMakesWhatTcSends(t *testing.T) {
	for _, r := range recorded {
		sent := hex.EncodeToString(options(t, r.hex))
		for name, value := range r.want {
			if r.kind == "fq_codel" && slices.Contains([]string{"target", "interval", "ce_threshold"}, name) {
				continue
			}
			b, err := tc.Change(r.kind, name, value)
			if err != nil || !strings.Contains(sent, hex.EncodeToString(b)) {
				t.Errorf("%s.%s=%s: %x, %v; not in %s", r.kind, name, value, b, err, sent)
			}
		}
	}
}

// codelKernel rounds a time as net/sched/sch_fq_codel.c does on input and output: CODEL_SHIFT is
// 10.
func codelKernel(sent uint32) uint32 {
	units := uint32(uint64(sent) * 1000 >> 10)
	if units == 1<<31-1 {
		return tc.Never // not reported
	}
	return uint32(uint64(units) << 10 / 1000)
}

// A time that was read is written back as the same time, any number of times; otherwise every undo
// would lose a microsecond.
func TestCodelTimesComeBack(t *testing.T) {
	drifted := 0
	for _, asked := range []uint32{0, 1, 5, 42, 43, 4999, 5000, 99999, 100000, 1000000, 4000000000, tc.Never} {
		read := codelKernel(asked)
		for range 3 {
			text, err := tc.Change("fq_codel", "ce_threshold", uintText(read))
			if err != nil {
				t.Fatal(err)
			}
			again := codelKernel(binary.NativeEndian.Uint32(text[4:]))
			if again != read {
				t.Errorf("requested %d, read %d; after writing that back, read %d", asked, read, again)
			}
		}
	}
	for n := range uint32(200000) {
		b, _ := tc.Change("fq_codel", "target", uintText(n))
		if got := codelKernel(binary.NativeEndian.Uint32(b[4:])); got != n {
			drifted++
			if got != n-1 {
				t.Fatalf("%d reads %d", n, got)
			}
		}
	}
	if drifted > 200000/40 {
		t.Errorf("%d of 200000 times read back changed; only one of 42 has no number of units",
			drifted)
	}
}

func uintText(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// Whole keeps unnamed options, makes the requested change, and omits options that must not be sent.
func TestWholeKeepsAll(t *testing.T) {
	// fq with an obsolete default rate (6) and unnamed weights of its bands (17).
	fq := options(t, "08000100881300000800060001000000"+"10001100010000000200000003000000")
	b, err := tc.Whole("fq", fq, "limit", "6000")
	if err != nil {
		t.Fatal(err)
	}
	got := hex.EncodeToString(b)
	if !strings.Contains(got, "10001100010000000200000003000000") || strings.Contains(got, "080006") ||
		!strings.Contains(got, "0800010070170000") {
		t.Errorf("fq: %s", got)
	}
	// cake as a kernel without connection tracking reports it: neither "nat off" nor the padding
	// must be sent.
	cake := options(t, "04000100"+"0c0002000000000000000000"+"08000b0000000000"+"0800060000000000"+"08000c0000000000")
	for overhead, want := range map[string]string{"raw": "raw", "44": "44", "0": "0", "-8": "-8"} {
		b, err := tc.Whole("cake", cake, "overhead", overhead)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(hex.EncodeToString(b), "08000b00") || strings.HasPrefix(hex.EncodeToString(b), "04000100") {
			t.Errorf("cake: %x", b)
		}
		if v, err := tc.Get("cake", "overhead", b); err != nil || v != want {
			t.Errorf("overhead %s: %q, %v", overhead, v, err)
		}
	}
	for kind, options := range map[string][]byte{"pfifo": {77, 0, 0, 0}, "bfifo": {1, 2, 3, 4}} {
		if b, err := tc.Whole(kind, options, "", ""); err != nil || !slices.Equal(b, options) {
			t.Errorf("%s: %x, %v", kind, b, err)
		}
	}
}

// A discipline with the kernel's defaults has no custom parameter; a changed one is named.
func TestCustom(t *testing.T) {
	for kind, changed := range map[string][2]string{"fq": {"flow_limit", "50"}, "fq_codel": {"ecn", "off"},
		"cake": {"bandwidth", "8000000"}} {
		b, err := tc.Change(kind, changed[0], changed[1])
		if err != nil {
			t.Fatal(err)
		}
		got, err := tc.Custom(kind, b, tc.Link{MTUBytes: 1500, TxQueueLen: 1000})
		if err != nil || !slices.Equal(got, []string{changed[0]}) {
			t.Errorf("%s: %v, %v; want %s", kind, got, err, changed[0])
		}
		if got, err := tc.Custom(kind, nil, tc.Link{}); err != nil || got != nil && kind != "cake" {
			t.Errorf("%s without options: %v, %v", kind, got, err)
		}
	}
}

// Some defaults depend on the link: a quantum on its MTU, the limit of a fifo on its transmit
// queue.
func TestCustomFollowsTheLink(t *testing.T) {
	link := tc.Link{MTUBytes: 9000, TxQueueLen: 500}
	for _, c := range []struct{ kind, name, usual, other string }{
		{"fq", "quantum", "18028", "3028"},
		{"fq", "initial_quantum", "90140", "15140"},
		{"fq_codel", "quantum", "9014", "1514"},
		{"pfifo", "limit", "500", "1000"},
		{"bfifo", "limit", "4507000", "4507001"},
	} {
		for value, want := range map[string]int{c.usual: 0, c.other: 1} {
			b, err := tc.Change(c.kind, c.name, value)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := tc.Custom(c.kind, b, link); err != nil || len(got) != want {
				t.Errorf("%s.%s=%s: custom %v, %v; want %d", c.kind, c.name, value, got, err, want)
			}
			if got, err := tc.Custom(c.kind, b, tc.Link{}); err != nil || len(got) != 0 {
				t.Errorf("%s.%s=%s on an unknown link: custom %v, %v", c.kind, c.name, value, got, err)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		kind, name, value string
		is                error
	}{
		{"fq", "no_such", "1", tc.ErrUnknown},
		{"htb", "limit", "1", tc.ErrUnknown},
		{"fq", "limit", "-1", tc.ErrValue},
		{"fq", "limit", "4294967296", tc.ErrValue}, // would be truncated to 0
		{"fq", "buckets", "1000", tc.ErrValue},     // tc(8) would take it for 512
		{"fq", "pacing", "1", tc.ErrValue},
		{"fq", "maxrate", "7", tc.ErrValue},
		{"fq", "maxrate", "34359738360", tc.ErrValue}, // would mean no limit
		{"cake", "diffserv", "diffserv5", tc.ErrValue},
		{"cake", "diffserv", "3", tc.ErrValue}, // besteffort has a word
		{"cake", "overhead", "rough", tc.ErrValue},
		{"cake", "bandwidth", "95mbit", tc.ErrValue},
	} {
		if _, err := tc.Change(c.kind, c.name, c.value); !errors.Is(err, c.is) {
			t.Errorf("%s.%s=%s: %v, want %v", c.kind, c.name, c.value, err, c.is)
		}
	}
	if _, err := tc.Get("fq", "horizon", nil); !errors.Is(err, tc.ErrAbsent) {
		t.Errorf("a kernel that lacks horizon: %v", err)
	}
	if _, err := tc.Get("pfifo", "limit", []byte{1, 2}); err == nil {
		t.Error("a fifo option of two bytes was accepted")
	}
}

// Any bytes from the kernel are read or refused, and a value that was read can be written and then
// reads the same.
func FuzzGet(f *testing.F) {
	for _, r := range recorded {
		b, _ := hex.DecodeString(r.hex)
		f.Add(r.kind, b)
	}
	f.Add("fq", []byte{8, 0, 8, 0, 32, 0, 0, 0})
	f.Fuzz(func(t *testing.T, kind string, b []byte) {
		_, _ = tc.Custom(kind, b, tc.Link{MTUBytes: 1500, TxQueueLen: 1000})
		_, _ = tc.Whole(kind, b, "", "")
		for _, name := range tc.Parameters(kind) {
			v, err := tc.Get(kind, name, b)
			if err != nil {
				continue
			}
			change, err := tc.Change(kind, name, v)
			if err != nil {
				// Rates that no link has, but that the kernel may report.
				if name == "maxrate" || name == "low_rate_threshold" || name == "bandwidth" {
					continue
				}
				t.Fatalf("%s.%s reads %q, which cannot be written: %v", kind, name, v, err)
			}
			again, err := tc.Get(kind, name, change)
			codel := kind == "fq_codel" && (name == "target" || name == "interval" || name == "ce_threshold")
			if err != nil || again != v && !codel {
				t.Fatalf("%s.%s: %q becomes %q, %v", kind, name, v, again, err)
			}
		}
	})
}

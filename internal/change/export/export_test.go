package export

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

// server is a set with every way in it.
func server() Set {
	why := "receive-window-limited"
	return Set{
		Origin: Origin{Host: "db1", OS: "linux", Kernel: "6.1.0-18-amd64", Arch: "amd64", Linerate: "v0.1.0",
			Time:    time.Date(2026, 11, 22, 13, 4, 5, 0, time.UTC),
			Drivers: map[string]string{"eth0": "e1000e", "eth1.100": "8021q"}},
		Proof: &Proof{Run: "20261122-130405-7f3a", Target: "192.0.2.7", Goal: "throughput", OtherEnd: 1,
			Effect: Effect{3.97, 3.91, 4.03, 0.95, 10}},
		Changes: []Change{
			{ID: "0001", Knob: "sysctl:net.ipv4.tcp_rmem", From: "4096 131072 6291456", To: "4096 131072 33554432",
				State: "committed", Why: why,
				Proof: &Effect{3.91, 3.84, 3.98, 0.95, 6}},
			{ID: "0002", Knob: "sysctl:net.ipv4.conf.eth1/100.rp_filter", From: "1", To: "2", State: "committed"},
			{ID: "0003", Knob: "sysctl:net.core.netdev_max_backlog", From: "1000", To: "4000", State: "committed",
				Proof: &Effect{Ratio: 1.02}},
			{ID: "0004", Knob: "link:eth0/mtu", From: "1500", To: "9000"},
			{ID: "0005", Knob: "link:eth0/txqueuelen", From: "1000", To: "2000"},
			{ID: "0006", Knob: "link:eth0/threaded", From: "0", To: "1"},
			{ID: "0007", Knob: "ethtool:eth0/ring.rx", From: "256", To: "4096"},
			{ID: "0008", Knob: "ethtool:eth0/ring.tx", From: "256", To: "1024"},
			{ID: "0009", Knob: "ethtool:eth0/channels.combined", From: "1", To: "4"},
			{ID: "0010", Knob: "ethtool:eth0/coalesce.rx-usecs", From: "3", To: "50"},
			{ID: "0011", Knob: "ethtool:eth0/coalesce.adaptive-rx", From: "on", To: "off"},
			{ID: "0012", Knob: "ethtool:eth0/pause.rx", From: "on", To: "off"},
			{ID: "0013", Knob: "ethtool:eth0/eee", From: "on", To: "off"},
			{ID: "0014", Knob: "ethtool:eth0/feature.rx-gro", From: "off", To: "on"},
			{ID: "0015", Knob: "ethtool:eth0/feature.tx-tcp-segmentation", From: "off", To: "on"},
			{ID: "0016", Knob: "ethtool:eth0/flag.legacy rx", From: "on", To: "off"},
			{ID: "0017", Knob: "ethtool:eth0/tunable.rx-copybreak", From: "256", To: "0"},
			{ID: "0018", Knob: "ethtool:eth0/rss.function", From: "toeplitz", To: "xor"},
			{ID: "0019", Knob: "queue:eth0/rx-0/rps_cpus", From: "0", To: "f"},
			{ID: "0020", Knob: "queue:eth0/tx-0/bql_limit_max", From: "1879048192", To: "500000"},
			{ID: "0021", Knob: "qdisc:eth0/root", From: "pfifo_fast", To: "fq"},
			{ID: "0022", Knob: "qdisc:eth0/fq.flow_limit", From: "100", To: "400"},
			{ID: "0023", Knob: "qdisc:eth0/fq.maxrate", From: "0", To: "1000000"},
			{ID: "0024", Knob: "route:default/initcwnd", From: "0", To: "30"},
			{ID: "0025", Knob: "route:2001:db8::/32/congctl", From: "none", To: "bbr"},
			{ID: "0026", Knob: "route:10.0.0.0/8/rto_min", From: "0", To: "20"},
			{ID: "0027", Knob: "irq:45/affinity", From: "0-3", To: "2"},
			{ID: "0028", Knob: "cpu:3/scaling_governor", From: "powersave", To: "performance"},
			{ID: "0029", Knob: "module:e1000/InterruptThrottleRate", From: "3", To: "8000"},
			{ID: "0030", Knob: "module:e1000/RxIntDelay", From: "0", To: "8"},
			{ID: "0031", Knob: "module:tcp_cubic/hystart", From: "1", To: "0"},
			{ID: "0032", Knob: "module:intel_idle/max_cstate", From: "9", To: "1"},
			{ID: "0033", Knob: "block:sda/read_ahead_kb", From: "128", To: "4096"},
			{ID: "0034", Knob: "nfs:/mnt/data/rsize", From: "65536", To: "1048576"},
			{ID: "0035", Knob: "pci:0000:03:00.0/l1_aspm", From: "1", To: "0"},
		},
	}
}

// plain is the usual case: a few sysctls, one run.
func plain() Set {
	s := server()
	s.Changes = []Change{s.Changes[0], s.Changes[2]}
	s.Changes[0].State, s.Changes[1].State = "persisted", "committed"
	return s
}

// hostile has texts that mean something to one of the languages, wherever a text can come from
// another host.
func hostile() Set {
	return Set{
		Origin: Origin{Host: "db1\n- name: pwned\x1b[2J", OS: "linux", Kernel: "6.1'\"${x}", Arch: "a\rb",
			Linerate: "*/ ''",
			Drivers:  map[string]string{"$(id)'\"`": "e\n1000"}},
		Proof: &Proof{Run: "../../etc", Target: "{{ lookup('pipe','id') }}\n[main]", Goal: "''${builtins.abort \"x\"}",
			Effect: Effect{Ratio: 2}},
		Changes: []Change{
			{ID: "1\n2", Knob: "sysctl:net.ipv4.tcp_congestion_control", From: "cubic",
				To: "x';id;'$(id)`id`\"{{id}}''${id}\\"},
			{Knob: "sysctl:net.ipv4.conf.$(id)'\"`.rp_filter", From: "0", To: "1", Why: "EOF\n]]>"},
			{Knob: "ethtool:$(id)'\"`/ring.rx", From: "1", To: "2'\"; $(id)"},
			{Knob: "ethtool:eth0/feature.--help", From: "off", To: "on"},
			{Knob: "link:-x/mtu", From: "1500", To: "9000"},
			{Knob: "link:eth0/mtu", From: "1500", To: "--help"},
			{Knob: "sysctl:net.ipv4.tcp_mem", From: "1 2 3", To: "1 2 3\nid"},
			{Knob: "sysctl:net/ipv4/../../../etc/passwd", From: "1", To: "2"},
			{Knob: "no such thing", From: "1", To: "2"},
			{Knob: "module:../x/y", From: "1", To: "2"},
			{Knob: "module:e1000/RxIntDelay", From: "1", To: "2 install e1000 /bin/sh"},
			{Knob: "block:../../x/read_ahead_kb", From: "1", To: "2"},
			{Knob: "queue:eth0/../rps_cpus", From: "1", To: "2"},
		},
	}
}

func sets() map[string]Set {
	return map[string]Set{"server": server(), "plain": plain(), "hostile": hostile()}
}

// TestGolden compares every file of every format with what was looked at by a person and given to
// the tool itself.
func TestGolden(t *testing.T) {
	for name, set := range sets() {
		for _, format := range Formats() {
			t.Run(name+"/"+string(format), func(t *testing.T) {
				b, err := Write(format, set)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range b.Files {
					golden(t, filepath.Join("testdata", name, string(format), f.Name), f)
				}
				checkPlain(t, b)
			})
		}
	}
}

func golden(t *testing.T, path string, f File) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.Content), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), f.Content); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// checkPlain holds what every file must be: lines of printable ASCII but for values, no blanks at
// an end, a caution.
func checkPlain(t *testing.T, b Bundle) {
	t.Helper()
	for i, f := range b.Files {
		for n, line := range strings.Split(f.Content, "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) {
				t.Errorf("%s:%d: %q has characters that a terminal may take for commands", f.Name, n+1, line)
			}
			if strings.TrimRight(line, " \t") != line {
				t.Errorf("%s:%d: ends in blanks", f.Name, n+1)
			}
		}
		if !strings.Contains(f.Content, "# CAUTION: it was proven there") {
			t.Errorf("file %d, %s, has no caution", i, f.Name)
		}
	}
}

// TestAllCarriedOrLeft: no change vanishes, and none is both carried and left out.
func TestAllCarriedOrLeft(t *testing.T) {
	for name, set := range sets() {
		for _, format := range Formats() {
			b, err := Write(format, set)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[knob.ID]int{}
			for _, id := range b.Carried {
				seen[id]++
			}
			for _, l := range b.LeftOut {
				seen[l.Knob]++
				if l.Why == "" {
					t.Errorf("%s %s: %s is left out without a reason", name, format, l.Knob)
				}
			}
			for _, c := range set.Changes {
				if seen[c.Knob] != 1 {
					t.Errorf("%s %s: %s appears %d times", name, format, c.Knob, seen[c.Knob])
				}
			}
		}
	}
}

// TestNothing: a set that no other host can take over is an answer of its own, with the reasons.
func TestNothing(t *testing.T) {
	set := Set{Changes: []Change{{Knob: "irq:45/affinity", From: "0-3", To: "2"}}}
	for _, format := range Formats() {
		b, err := Write(format, set)
		if !errors.Is(err, ErrNothing) || len(b.LeftOut) != 1 || len(b.Files) != 0 {
			t.Errorf("%s: %v, %+v", format, err, b)
		}
	}
	if _, err := Write("chef", plain()); err == nil || !strings.Contains(err.Error(), "not one of") {
		t.Errorf("an unknown format: %v", err)
	}
}

// TestMerge: changes of one knob are one, and one that came back to where it began is none.
func TestMerge(t *testing.T) {
	got := merge([]Change{
		{ID: "1", Knob: "a", From: "1", To: "2", Why: "x"}, {ID: "2", Knob: "b", From: "1", To: "2"},
		{ID: "3", Knob: "a", From: "2", To: "3", Why: "y"}, {ID: "4", Knob: "b", From: "2", To: "1"},
	})
	want := []Change{{ID: "1,3", Knob: "a", From: "1", To: "3", Why: "y"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCautionOfUnproven: files do not call proven what was only set.
func TestCautionOfUnproven(t *testing.T) {
	none, some := plain(), plain()
	none.Proof, some.Proof = nil, nil
	for i := range none.Changes {
		none.Changes[i].Proof = nil
	}
	some.Changes[1].Proof = &Effect{Ratio: 2}
	some.Changes[0].Proof = nil
	for name, c := range map[string]struct {
		set        Set
		want, then string
	}{
		"none": {none, "# CAUTION: it was only set there. No stored run proves that it helps", "was proven there"},
		"some": {some, "# CAUTION: 1 of 2 settings were proven there", "it was proven there"},
	} {
		for _, format := range Formats() {
			b, err := Write(format, c.set)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range b.Files {
				if !strings.Contains(f.Content, c.want) || strings.Contains(f.Content, c.then) {
					t.Errorf("%s: %s %s: want %q and not %q:\n%s", name, format, f.Name, c.want, c.then, f.Content)
				}
			}
		}
	}
}

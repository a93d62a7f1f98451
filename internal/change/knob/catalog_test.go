package knob_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

func TestLookup(t *testing.T) {
	c := knob.Catalogue()
	for id, want := range map[knob.ID]knob.ID{
		"sysctl:net.ipv4.tcp_rmem":                      "sysctl:net.ipv4.tcp_rmem",
		"sysctl:net.ipv4.conf.eth0/100.rp_filter":       "sysctl:net.ipv4.conf.*.rp_filter",
		"sysctl:net.ipv4.neigh.default.gc_thresh3":      "sysctl:net.ipv4.neigh.default.gc_thresh3",
		"link:eth0.100/mtu":                             "link:*/mtu",
		"ethtool:eth0/feature.rx-gro":                   "ethtool:*/feature.rx-gro",
		"ethtool:eth0/feature.something-new":            "ethtool:*/feature.*",
		"route:10.0.0.0/8/window":                       "route:*/window",
		"route:default/initcwnd":                        "route:*/initcwnd",
		"sysctl:net.ipv4.no_such":                       "",
		"queue:eth0/rx-12/rps_cpus":                     "queue:*/rx-*/rps_cpus",
		"queue:eth0/rx-12/xps_cpus":                     "",
		"queue:eth0/rps_cpus":                           "",
		"irq:45/affinity":                               "irq:*/affinity",
		"module:e1000e/copybreak":                       "module:e1000e/copybreak",
		"nfs:/mnt/a b/rsize":                            "nfs:*/rsize",
		"link:eth0/colour":                              "",
		"ethtool:eth0/feature.":                         "",
		"sysctl:net.ipv4.conf.eth0.rp_filter.rp_filter": "",
	} {
		d, ok := c.Lookup(id)
		if ok != (want != "") || d.Pattern != want {
			t.Errorf("%s: %q %v; want %q", id, d.Pattern, ok, want)
		}
	}
}

func TestMatch(t *testing.T) {
	c := knob.Catalogue()
	names := func(pattern string) (out []string) {
		for _, d := range c.Match(pattern) {
			out = append(out, string(d.Pattern))
		}
		return out
	}
	if got, all := len(names("")), len(c.All()); got != all || all < 60 {
		t.Errorf("everything: %d of %d", got, all)
	}
	for pattern, want := range map[string][]string{
		"net.ipv4.tcp_[rw]mem":        {"sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_wmem"},
		"sysctl:net.ipv4.tcp_[rw]mem": {"sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_wmem"},
		"link:*": {"link:*/mtu", "link:*/txqueuelen", "link:*/napi_defer_hard_irqs", "link:*/gro_flush_timeout",
			"link:*/threaded",
			"link:*/gso_max_size", "link:*/gro_max_size", "link:*/gso_ipv4_max_size", "link:*/gro_ipv4_max_size"},
		"QUICKACK":                 {"route:*/quickack"},
		"tail loss":                {"sysctl:net.ipv4.tcp_early_retrans"},
		"ethtool:eth0/feature.gro": {"ethtool:*/feature.rx-gro"},
		"sysctl:net.ipv4.conf.eth0/100.rp_filter": {"sysctl:net.ipv4.conf.*.rp_filter"},
		"no such knob":                  nil,
		"[":                             nil,
		"route:*/initcwnd":              {"route:*/initcwnd"},
		"sysctl:net.core.netdev_budget": {"sysctl:net.core.netdev_budget"},
		"net.ipv4.tcp_rmem":             {"sysctl:net.ipv4.tcp_rmem"},
		"sysctl:net.ipv6.neigh.eth0.unres_qlen_bytes": {"sysctl:net.ipv6.neigh.*.unres_qlen_bytes"},
	} {
		if diff := cmp.Diff(want, names(pattern)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", pattern, diff)
		}
	}
}

// Every default of the catalogue is a value that its own definition takes, in canonical form, and
// texts are sentences.
func TestCatalogueIsConsistent(t *testing.T) { checkDefinitions(t, knob.Catalogue().All()) }

func checkDefinitions(t *testing.T, all []knob.Definition) {
	t.Helper()
	for _, d := range all {
		if d.DefaultOn != "" && d.Default != "" {
			valid := d.Normalize
			if d.Shown[knob.Value(d.Default)] != "" {
				valid = d.Canonical
			}
			if v, err := valid(knob.Value(d.Default)); err != nil || string(v) != d.Default {
				t.Errorf("%s: default %q is %q, %v", d.Pattern, d.Default, v, err)
			}
		}
		if d.DefaultOn == "" && d.Default != "" {
			t.Errorf("%s: DefaultOn does not say where the default %q was read", d.Pattern, d.Default)
		}
		for what, text := range map[string]string{"what": d.What, "symptom": d.Symptom, "expect": d.Expect,
			"risk": d.Risk} {
			if !strings.HasSuffix(text, ".") || strings.TrimSpace(text) != text {
				t.Errorf("%s: %s is no sentence: %q", d.Pattern, what, text)
			}
		}
		if strings.HasSuffix(d.Title, ".") || len(d.Title) > 72 {
			t.Errorf("%s: title %q", d.Pattern, d.Title)
		}
		if d.Allowed() == "" || d.Persist == "" {
			t.Errorf("%s: allowed %q, persist %q", d.Pattern, d.Allowed(), d.Persist)
		}
		switch kind := d.Pattern.Kind(); {
		case kind == knob.KindRoute && d.Scope != knob.ScopeRoute,
			(kind == knob.KindLink || kind == knob.KindEthtool) && d.Scope != knob.ScopeDevice:
			t.Errorf("%s: scope %s", d.Pattern, d.Scope)
		}
	}
}

func TestParseCatalogRefuses(t *testing.T) {
	entry := func(changes string) string {
		return `[{"knob":"link:*/mtu","title":"t","what":"w.","form":"int","scope":"device","disturbance":2,"effect":"now",` +
			`"symptom":"s.","expect":"e.","risk":"r.","persist":"p","source":"x"` + changes + `}]`
	}
	if _, err := knob.ParseCatalog([]byte(entry(""))); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "{}", "[1]", entry(`,"colour":"red"`), entry(`,"min":2,"max":1`), entry(`,"form":"number"`),
		entry(`,"scope":"world"`), entry(`,"effect":"later"`),
		entry(`,"disturbance":9`), entry(`,"title":""`), entry(`,"expect":""`), entry(`,"persist":""`),
		entry(`,"knob":"mtu"`),
		entry(`,"knob":"ethtool:*/feature.tso"`), entry(`,"form":"ints"`),
		strings.TrimSuffix(entry(""), "]") + "," + strings.TrimPrefix(entry(""), "["),
	} {
		if _, err := knob.ParseCatalog([]byte(bad)); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
}

func TestNormalize(t *testing.T) {
	c := knob.Catalogue()
	for _, tc := range []struct {
		id       knob.ID
		in, want knob.Value // want empty: refused
		allowed  string
	}{
		{"sysctl:net.ipv4.tcp_rmem", "4096\t131072\t33554432\n", "4096 131072 33554432", ""},
		{"sysctl:net.ipv4.tcp_rmem", "04096 131072 33554432", "4096 131072 33554432", ""},
		{"sysctl:net.ipv4.tcp_rmem", "4096 131072 33554432 1", "",
			"3 integers from 1 to 2147483647 in ascending order (bytes)"},
		{"sysctl:net.ipv4.tcp_rmem", "33554432 131072 4096", "", "ascending"},
		{"sysctl:net.ipv4.tcp_rmem", "", "", "3 integers"},
		{"sysctl:net.ipv4.tcp_rmem", "4096 131072 0x10", "", "3 integers"},
		{"sysctl:net.ipv4.tcp_notsent_lowat", "4294967295", "4294967295", ""},
		{"sysctl:net.ipv4.tcp_notsent_lowat", "4294967296", "", "an integer from 0 to 4294967295 (bytes)"},
		{"sysctl:net.ipv4.tcp_notsent_lowat", "99999999999999999999", "", "an integer"},
		{"sysctl:net.ipv4.tcp_sack", "ON", "1", ""},
		{"sysctl:net.ipv4.tcp_sack", "2", "", "0 or 1"},
		{"ethtool:eth0/feature.rx-gro", "1", "on", ""},
		{"ethtool:eth0/feature.rx-gro", "maybe", "", "on or off"},
		{"sysctl:net.ipv4.tcp_congestion_control", " bbr\n", "bbr", ""},
		{"sysctl:net.ipv4.tcp_congestion_control", "bbr cubic", "", "one word"},
		{"sysctl:net.core.flow_limit_cpu_bitmap", "0000,00000000,0000000F", "f", ""},
		{"sysctl:net.core.flow_limit_cpu_bitmap", "1,0", "1,00000000", ""},
		{"sysctl:net.core.flow_limit_cpu_bitmap", "123456789", "", "mask"},
		{"sysctl:net.core.flow_limit_cpu_bitmap", "", "", "mask"},
		{"sysctl:net.ipv4.ip_local_reserved_ports", "3,1-2, 10", "", "numbers and ranges from 0 to 65535"},
		{"sysctl:net.ipv4.ip_local_reserved_ports", "10,3,1-2", "1-3,10", ""},
		{"sysctl:net.ipv4.ip_local_reserved_ports", "9-1", "", "numbers"},
		{"sysctl:net.ipv4.ip_local_reserved_ports", "65536", "", "numbers"},
		{"sysctl:net.ipv4.ip_local_reserved_ports", "\n", "", ""},
		{"module:e1000/InterruptThrottleRate", "3000, 03000,0", "3000,3000,0", ""}, // in the order of the adapters
		{"module:e1000/InterruptThrottleRate", "3000,", "",
			"integers from 0 to 100000 parted by commas (interrupts per second)"},
		{"module:e1000/InterruptThrottleRate", "100001", "", "integers from 0"},
		{"module:nf_conntrack/acct", "Y\n", "1", ""},
		{"irq:24/affinity", "3,0-1", "0-1,3", ""},
		{"queue:eth0/rx-0/rps_cpus", "00000000,0000000F", "f", ""},
		{"qdisc:eth0/root", "htb", "", "one of bfifo, cake, fq, fq_codel"},
		{"link:eth0/mtu", "9000", "9000", ""},
		{"link:eth0/mtu", "67", "", "an integer from 68 to 65535 (bytes)"},
	} {
		d, ok := c.Lookup(tc.id)
		if !ok {
			t.Fatalf("%s is not in the catalogue", tc.id)
		}
		got, err := d.Normalize(tc.in)
		if tc.allowed == "" {
			if err != nil || got != tc.want {
				t.Errorf("%s %q: %q, %v; want %q", tc.id, tc.in, got, err, tc.want)
			}
			continue
		}
		var r *knob.RangeError
		if !errors.As(err, &r) || !errors.Is(err, knob.ErrInvalid) || !strings.Contains(err.Error(), tc.allowed) {
			t.Errorf("%s %q: %q, %v; want a RangeError with %q", tc.id, tc.in, got, err, tc.allowed)
		}
	}
}

// What lies outside the range still has a canonical form: an original must go back as it was.
func TestCanonicalHasNoRange(t *testing.T) {
	c := knob.Catalogue()
	for id, values := range map[knob.ID][2]knob.Value{
		"link:lo/mtu":                  {" 65536", "65536"},
		"sysctl:net.ipv4.tcp_rmem":     {"9\t8\t7", "9 8 7"},
		"sysctl:net.ipv4.tcp_sack":     {"7", "7"},
		"sysctl:net.ipv4.tcp_recovery": {"99", "99"},
	} {
		d, _ := c.Lookup(id)
		if _, err := d.Normalize(values[0]); err == nil {
			t.Errorf("%s takes %q", id, values[0])
		}
		if got, err := d.Canonical(values[0]); err != nil || got != values[1] {
			t.Errorf("%s: %q %v; want %q", id, got, err, values[1])
		}
	}
}

// TestShownValues: a value that the kernel reports and refuses is refused with what to set instead,
// and is still a value that was there before. Linux 6.18 answers EINVAL to 0, and to less than two
// pages for dirty_bytes (mm/page-writeback.c).
func TestShownValues(t *testing.T) {
	for id, least := range map[knob.ID]knob.Value{"sysctl:vm.dirty_bytes": "8192",
		"sysctl:vm.dirty_background_bytes": "1"} {
		d, _ := knob.Catalogue().Lookup(id)
		_, err := d.Normalize(" 0")
		if want := "does not take it: dirty_"; err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "_ratio is in force; set that one") || strings.Contains(err.Error(), "at least 0") {
			t.Errorf("%s=0: %v, want %q", id, err, want)
		}
		if v, err := d.Canonical("0\n"); v != "0" || err != nil {
			t.Errorf("%s reads 0: %q, %v", id, v, err)
		}
		if v, err := d.Normalize(least); v != least || err != nil {
			t.Errorf("%s=%s: %v", id, least, err)
		}
		if text := d.Allowed(); !strings.Contains(text, "of at least "+string(least)) ||
			!strings.Contains(text, "it may read 0, which cannot be set") {
			t.Errorf("%s: %s", id, text)
		}
	}
}

func TestEqual(t *testing.T) {
	c := knob.Catalogue()
	for _, tc := range []struct {
		id   knob.ID
		a, b knob.Value
		want bool
	}{
		{"sysctl:net.ipv4.tcp_rmem", "4096\t131072\t6291456", "4096 131072 6291456", true},
		{"sysctl:net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 131072 6291457", false},
		{"ethtool:a/feature.rx-gro", "1", "on", true},
		{"sysctl:net.core.flow_limit_cpu_bitmap", "0,f", "F", true},
		{"sysctl:net.ipv4.tcp_rmem", "odd  text", "odd text", true},
		{"sysctl:net.ipv4.tcp_rmem", "odd", "4096 131072 6291456", false},
	} {
		d, _ := c.Lookup(tc.id)
		if got := d.Equal(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %q and %q equal: %v", tc.id, tc.a, tc.b, got)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	_, err := knob.NewMemory(nil).Read(t.Context(), "link:eth0/mtu")
	if got := fmt.Sprint(err); got != "read link:eth0/mtu: file does not exist" {
		t.Error(got)
	}
	m := knob.NewMemory(map[knob.ID]knob.Value{"link:eth0/mtu": "1500"})
	err = m.Write(t.Context(), "link:eth0/mtu", "10")
	if got := fmt.Sprint(err); got != `write link:eth0/mtu: value "10": want an integer from 68 to 65535 (bytes)` {
		t.Error(got)
	}
}

// Canonical forms are fixed points, a canonical value in range stays in range, and no text makes a
// definition panic.
func FuzzNormalize(f *testing.F) {
	all := knob.Catalogue().All()
	for i, d := range all {
		f.Add(uint16(i), d.Default)
	}
	f.Add(uint16(0), "4096\t131072\t33554432\n")
	f.Add(uint16(0), "9223372036854775807 1 -1")
	f.Add(uint16(40), "1,00000000")
	f.Fuzz(func(t *testing.T, i uint16, s string) {
		d := all[int(i)%len(all)]
		v, err := d.Normalize(knob.Value(s))
		if err == nil {
			if again, err := d.Normalize(v); err != nil || again != v {
				t.Fatalf("%s: %q gives %q, which gives %q, %v", d.Pattern, s, v, again, err)
			}
			if !d.Equal(v, knob.Value(s)) {
				t.Fatalf("%s: %q is not equal to its own normal form %q", d.Pattern, s, v)
			}
		}
		if c, err := d.Canonical(knob.Value(s)); err == nil {
			if again, err := d.Canonical(c); err != nil || again != c {
				t.Fatalf("%s: canonical %q gives %q, %v", d.Pattern, c, again, err)
			}
		}
	})
}

func FuzzParseCatalog(f *testing.F) {
	f.Add([]byte(`[{"knob":"link:*/mtu","title":"t","what":"w.","form":"int","scope":"device",` +
		`"disturbance":2,"effect":"now","symptom":"s.","expect":"e.","risk":"r.","persist":"p","source":"x"}]`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := knob.ParseCatalog(data)
		if err != nil {
			return
		}
		for _, d := range c.All() {
			if _, ok := c.Lookup(d.Pattern); !ok {
				t.Fatalf("%s does not find itself", d.Pattern)
			}
		}
	})
}

// TestEachKindHasItsFile: a knob in the file of another kind would be listed, and not be found.
func TestEachKindHasItsFile(t *testing.T) {
	for _, d := range knob.Catalogue().All() {
		if found, ok := knob.Catalogue().Lookup(d.Pattern); !ok || found.Pattern != d.Pattern {
			t.Errorf("%s is listed, and its name finds %q", d.Pattern, found.Pattern)
		}
	}
}

package knob_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

func TestParseID(t *testing.T) {
	for _, tc := range []struct{ in, want, kind, subject, attribute, iface string }{
		{"sysctl:net.ipv4.tcp_rmem", "", "sysctl", "", "net.ipv4.tcp_rmem", ""},
		{"sysctl:net/ipv4/tcp_rmem", "sysctl:net.ipv4.tcp_rmem", "sysctl", "", "net.ipv4.tcp_rmem", ""},
		{"sysctl:net.ipv4.conf.eth0/100.rp_filter", "", "sysctl", "", "net.ipv4.conf.eth0/100.rp_filter", "eth0.100"},
		{"sysctl:net/ipv4/conf/eth0.100/rp_filter", "sysctl:net.ipv4.conf.eth0/100.rp_filter", "sysctl", "",
			"net.ipv4.conf.eth0/100.rp_filter", "eth0.100"},
		{"sysctl:net.ipv4.conf.all.rp_filter", "", "sysctl", "", "net.ipv4.conf.all.rp_filter", ""},
		{"sysctl:net.ipv6.neigh.eth0.unres_qlen_bytes", "", "sysctl", "",
			"net.ipv6.neigh.eth0.unres_qlen_bytes", "eth0"},
		{"link:eth0/mtu", "", "link", "eth0", "mtu", "eth0"},
		{"link:eth0.100/txqueuelen", "", "link", "eth0.100", "txqueuelen", "eth0.100"},
		{"ethtool:eth0/ring.rx", "", "ethtool", "eth0", "ring.rx", "eth0"},
		{"ethtool:eth0/coalesce.rx-usecs", "", "ethtool", "eth0", "coalesce.rx-usecs", "eth0"},
		{"ethtool:eth0/feature.tx-tcp-segmentation", "", "ethtool", "eth0", "feature.tx-tcp-segmentation", "eth0"},
		{"ethtool:eth0/feature.tso", "ethtool:eth0/feature.tx-tcp-segmentation", "ethtool", "eth0",
			"feature.tx-tcp-segmentation", "eth0"},
		{"ethtool:eth0/feature.gso", "ethtool:eth0/feature.tx-generic-segmentation", "ethtool", "eth0",
			"feature.tx-generic-segmentation", "eth0"},
		{"ethtool:eth0/feature.gro", "ethtool:eth0/feature.rx-gro", "ethtool", "eth0", "feature.rx-gro", "eth0"},
		{"ethtool:eth0/feature.lro", "ethtool:eth0/feature.rx-lro", "ethtool", "eth0", "feature.rx-lro", "eth0"},
		{"ethtool:eth0/feature.sg", "ethtool:eth0/feature.tx-scatter-gather", "ethtool", "eth0",
			"feature.tx-scatter-gather", "eth0"},
		{"ethtool:eth0/feature.tx", "ethtool:eth0/feature.tx-checksum-ip-generic", "ethtool", "eth0",
			"feature.tx-checksum-ip-generic", "eth0"},
		{"ethtool:eth0/feature.rx", "ethtool:eth0/feature.rx-checksum", "ethtool", "eth0",
			"feature.rx-checksum", "eth0"},
		{"irq:45/affinity", "", "irq", "45", "affinity", ""},
		{"queue:eth0/rx-0/rps_cpus", "", "queue", "eth0/rx-0", "rps_cpus", "eth0"},
		{"route:10.0.0.0/8/window", "", "route", "10.0.0.0/8", "window", ""},
		{"route:10.1.2.3/8/window", "route:10.0.0.0/8/window", "route", "10.0.0.0/8", "window", ""},
		{"route:10.1.2.3/initcwnd", "route:10.1.2.3/32/initcwnd", "route", "10.1.2.3/32", "initcwnd", ""},
		{"route:default/initcwnd", "", "route", "default", "initcwnd", ""},
		{"route:0.0.0.0/0/initcwnd", "route:default/initcwnd", "route", "default", "initcwnd", ""},
		{"route:::/0/initcwnd", "", "route", "::/0", "initcwnd", ""},
		{"route:FD00:0::/32/mtu", "route:fd00::/32/mtu", "route", "fd00::/32", "mtu", ""},
		{"qdisc:eth0/root", "", "qdisc", "eth0", "root", "eth0"},
		{"qdisc:eth0.100/fq_codel.ce_threshold", "", "qdisc", "eth0.100", "fq_codel.ce_threshold", "eth0.100"},
		{"ethtool:eth0/flag.legacy rx mode", "", "ethtool", "eth0", "flag.legacy rx mode", "eth0"},
		{"module:tcp-cubic/hystart-detect", "module:tcp_cubic/hystart_detect", "module", "tcp_cubic",
			"hystart_detect", ""},
		{"module:e1000/InterruptThrottleRate", "", "module", "e1000", "InterruptThrottleRate", ""},
		{"nfs:/mnt/my data/rsize", "", "nfs", "/mnt/my data", "rsize", ""},
		{`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize`, "", "registry",
			`HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`, "TcpWindowSize", ""},
		{"ipadm:tcp/recv_buf", "", "ipadm", "tcp", "recv_buf", ""},
		{"dladm:net0/mtu", "", "dladm", "net0", "mtu", "net0"},
	} {
		want := tc.want
		if want == "" {
			want = tc.in
		}
		id, err := knob.ParseID(tc.in)
		if err != nil || string(id) != want {
			t.Errorf("%s: %q, %v; want %q", tc.in, id, err, want)
			continue
		}
		got := []string{id.Kind(), id.Subject(), id.Attribute(), id.Interface()}
		if diff := cmp.Diff([]string{tc.kind, tc.subject, tc.attribute, tc.iface}, got); diff != "" {
			t.Errorf("%s: kind, subject, attribute, interface (-want +got):\n%s", tc.in, diff)
		}
	}
}

// TestParseTyped: fingers know sysctl(8). What the catalogue does not have as a sysctl stays a
// mistake: an interface's knob without its kind must not become one.
func TestParseTyped(t *testing.T) {
	for typed, want := range map[string]knob.ID{
		"net.ipv4.tcp_rmem": "sysctl:net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem": "sysctl:net.ipv4.tcp_rmem",
		"net.ipv4.conf.eth0.rp_filter": "sysctl:net.ipv4.conf.eth0.rp_filter",
		"sysctl:net.ipv4.tcp_rmem":     "sysctl:net.ipv4.tcp_rmem", "link:eth0/mtu": "link:eth0/mtu",
		"net.ipv4.tcp_rmen": "", "eth0/mtu": "", "tcp_rmem": "", "": "", "net": "",
	} {
		id, err := knob.Catalogue().ParseTyped(typed)
		if id != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, knob.ErrUnknown) {
			t.Errorf("%q: %q, %v", typed, id, err)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, bad := range []string{
		"", "net.ipv4.tcp_rmem", "sysctl:", "sysctl:net", "sysctl:net..ipv4", "sysctl:.net.ipv4", "sysctl:net.ipv4.",
		"sysctl:/net/ipv4",
		"sysctl:net/../kernel/core_pattern", "sysctl:net.//.tcp_rmem", "sysctl:net./.tcp_rmem", "sysctl:net ipv4",
		"sysctl:net.ipv4.x\n", "sysctl:net.ipv4.x\x00",
		"link:eth0", "link:/mtu", "link:eth0/", "link:a/b/mtu", "link:../mtu", "link:eth0:1/mtu", "link:eth 0/mtu",
		"ethtool:a/b/feature.rx",
		"route:10.0.0.0/33/window", "route:eth0/window", "route:fe80::1%eth0/window", "route:10.0.0.0/8",
		"route:/window",
		"disk:sda/scheduler", "SYSCTL:net.ipv4.tcp_rmem", " sysctl:net.ipv4.tcp_rmem", "link:eth0/m\ufffdtu",
	} {
		id, err := knob.ParseID(bad)
		var e *knob.Error
		if !errors.Is(err, knob.ErrUnknown) || !errors.As(err, &e) || e.Op != "parse" {
			t.Errorf("%q gives %q, %v; want ErrUnknown", bad, id, err)
		}
	}
}

// Path elements survive any dots in them, in both notations.
func TestSysctlPathsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []byte("abcxyz019_-.")
	for range 5000 {
		path := []string{"net"}
		for range 1 + rng.IntN(4) {
			e := make([]byte, 1+rng.IntN(6))
			for i := range e {
				e[i] = letters[rng.IntN(len(letters))]
			}
			if s := string(e); s != "." && s != ".." {
				path = append(path, s)
			}
		}
		if len(path) < 2 {
			continue
		}
		id := knob.SysctlID(path...)
		if diff := cmp.Diff(path, id.Path()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", id, diff)
		}
		slashes, err := knob.ParseID("sysctl:" + strings.Join(path, "/"))
		if err != nil || slashes != id {
			t.Fatalf("path %q: %q %v; want %q", path, slashes, err, id)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{
		"sysctl:net.ipv4.conf.eth0/100.rp_filter", "sysctl:net/ipv4/tcp_rmem", "link:eth0/mtu",
		"ethtool:eth0/feature.tso", "route:10.1.2.3/8/window",
		"route:::/0/mtu", "route:0.0.0.0/0/mtu", "queue:eth0/rx-0/rps_cpus", `registry:HKLM\A B\C`, "nfs:/mnt/x/rsize",
		"sysctl:net/../x", "sysctl:*.*",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := knob.ParseID(s)
		if err != nil {
			return
		}
		again, err := knob.ParseID(string(id))
		if err != nil || again != id {
			t.Fatalf("%q gives %q, which gives %q, %v", s, id, again, err)
		}
		if id.Kind() == knob.KindSysctl {
			path := id.Path()
			if path == nil || slices.Contains(path, "..") || slices.Contains(path, ".") || slices.Contains(path, "") ||
				slices.ContainsFunc(path, func(e string) bool { return strings.ContainsAny(e, "/\x00") }) {
				t.Fatalf("%q gives the path %q", s, path)
			}
		}
		if id.Attribute() == "" {
			t.Fatalf("%q has no attribute", id)
		}
	})
}

package live_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

// world is a namespace with a pair of interfaces, one of them named like a VLAN, and a few routes.
func world(t *testing.T) *knobtest.NetNS {
	t.Helper()
	ns := knobtest.NewNetNS(t)
	ns.Do(t, func() {
		c, err := nl.Dial()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		for _, step := range []error{
			c.AddVeth("v0.100", "v1", -1), c.SetUp("v0.100"), c.SetUp("v1"),
			c.AddAddress("v0.100", "10.9.0.1/24"), c.AddAddress("v0.100", "fd00:9::1/64"),
			route.New(c).Add(route.Route{Destination: "default", Gateway: "10.9.0.2"}),
			route.New(c).Add(route.Route{Destination: "10.20.0.0/16", Gateway: "10.9.0.2", Priority: 5, MTU: 1300}),
			route.New(c).Add(route.Route{Destination: "10.20.0.0/16", Gateway: "10.9.0.3", Priority: 50, InitCwnd: 77}),
			route.New(c).Add(route.Route{Destination: "::/0", Gateway: "fd00:9::2"}),
		} {
			if step != nil {
				t.Error(step)
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return ns
}

func liveFixture(t *testing.T) knobtest.Fixture {
	ns := world(t)
	return knobtest.Fixture{
		Backend: ns.Backend(t, live.New()),
		Writable: []knobtest.Pair{
			{Knob: "sysctl:net.ipv4.tcp_rmem", A: "4096 131072 6291456", B: "8192 262144 67108864"},
			{Knob: "sysctl:net.ipv4.tcp_congestion_control", A: "reno", B: otherAlgorithm(t)},
			{Knob: "sysctl:net.ipv4.conf.v0/100.rp_filter", A: "1", B: "2"},
			{Knob: "sysctl:net.ipv4.tcp_notsent_lowat", A: "131072", B: "4294967295"},
			{Knob: "sysctl:net.ipv4.ip_local_port_range", A: "1024 65535", B: "32768 60999"},
			{Knob: "link:v0.100/mtu", A: "9000", B: "1400"},
			{Knob: "link:v1/txqueuelen", A: "77", B: "1000"},
			{Knob: "ethtool:v0.100/feature.tx-tcp-segmentation", A: "off", B: "on"},
			{Knob: "ethtool:v1/feature.rx-gro", A: "off", B: "on"},
			{Knob: "route:default/initcwnd", A: "32", B: "0"},
			{Knob: "route:default/initrwnd", A: "0", B: "40"},
			{Knob: "route:default/window", A: "65535", B: "131072"},
			{Knob: "route:10.20.0.0/16/mtu", A: "1280", B: "1300"},
			{Knob: "route:10.20.0.0/16/advmss", A: "1000", B: "0"},
			{Knob: "route:10.9.0.0/24/quickack", A: "1", B: "0"},
			{Knob: "route:::/0/initcwnd", A: "20", B: "0"},
			{Knob: "route:default/congctl", A: "reno", B: "none"},
			{Knob: "route:default/congctl_lock", A: "1", B: "0"},
			{Knob: "route:default/rto_min", A: "7", B: "0"},
			{Knob: "route:::/0/rto_min", A: "9", B: "0"},
			{Knob: "route:10.9.0.0/24/ecn", A: "1", B: "0"},
			{Knob: "route:10.20.0.0/16/mtu_lock", A: "1", B: "0"},
		},
		Messy: []knobtest.Messy{
			{Knob: "sysctl:net.ipv4.tcp_rmem", Text: "\t4096\t131072   6291456\n", ReadBack: "4096 131072 6291456"},
			{Knob: "sysctl:net.ipv4.tcp_sack", Text: "off", ReadBack: "0"},
			{Knob: "ethtool:v0.100/feature.rx-gro", Text: "yes", ReadBack: "on"},
			{Knob: "sysctl:net.ipv4.ip_local_reserved_ports", Text: "7070,80,81-90,82", ReadBack: "80-90,7070"},
		},
		Invalid: []knob.Setting{
			{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 131072"},
			{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 131072 1 1"},
			{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "0 0 0"},
			// the kernel has stored the first when it refuses the second
			{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "5000 0 6000"},
			{Knob: "sysctl:net.ipv4.ip_local_port_range", Value: "2000 99999999"},
			{Knob: "sysctl:net.ipv4.tcp_sack", Value: "banana"},
			{Knob: "sysctl:net.ipv4.tcp_congestion_control", Value: "no-such-algorithm"},
			{Knob: "link:v0.100/mtu", Value: "10"},
			{Knob: "link:v0.100/mtu", Value: "1e3"},
			{Knob: "route:default/mtu", Value: "65536"},
			{Knob: "route:default/ecn", Value: "2"},
			{Knob: "route:default/congctl", Value: "no-such-algorithm"},
			{Knob: "ethtool:v0.100/feature.rx-gro", Value: "2"},
		},
		ReadOnly: knob.Setting{Knob: "sysctl:net.ipv4.tcp_available_congestion_control", Value: "reno"},
		Missing: []knob.ID{
			"sysctl:net.ipv4.no_such_setting", "link:eth9/mtu", "ethtool:eth9/feature.rx-gro",
			"ethtool:v1/feature.no-such-feature", "route:10.77.0.0/16/window",
		},
		Unsupported: "ipadm:tcp/recv_buf",
		Foreign: func(t *testing.T, s knob.Setting) {
			ns.Do(t, func() { foreignWrite(t, s) })
		},
		Device: "link:v0.100/mtu",
		Vanish: func(t *testing.T) { deleteLink(t, ns, "v1") },
	}
}

// deleteLink takes an interface of a namespace away, and with a veth its other end.
func deleteLink(t *testing.T, ns *knobtest.NetNS, name string) {
	t.Helper()
	ns.Do(t, func() {
		c, err := nl.Dial()
		if err == nil {
			err = errors.Join(c.DeleteLink(name), c.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// otherAlgorithm is a congestion control besides reno that this kernel has loaded.
func otherAlgorithm(t *testing.T) knob.Value {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range strings.Fields(string(b)) {
		if a != "reno" {
			return knob.Value(a)
		}
	}
	return "reno"
}

// foreignWrite does what another tool would, by its own way.
func foreignWrite(t *testing.T, s knob.Setting) {
	if path := s.Knob.Path(); path != nil {
		if err := os.WriteFile(filepath.Join(append([]string{"/proc/sys"}, path...)...), []byte(s.Value),
			0); err != nil {
			t.Error(err)
		}
		return
	}
	c, err := nl.Dial()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	n, _ := strconv.Atoi(string(s.Value)) // features have no number
	switch a := s.Knob.Attribute(); {
	case a == "mtu" && s.Knob.Kind() == knob.KindLink:
		err = c.SetMTU(s.Knob.Subject(), n)
	case a == "txqueuelen":
		err = c.SetTxQueueLen(s.Knob.Subject(), n)
	case s.Knob.Kind() == knob.KindEthtool:
		err = ethtool.New(c).SetFeature(s.Knob.Subject(), strings.TrimPrefix(a, "feature."), s.Value == "on")
	case a == "congctl":
		err = route.New(c).SetCongestion(s.Knob.Subject(), strings.TrimPrefix(string(s.Value), "none"))
	default:
		err = route.New(c).SetMetric(s.Knob.Subject(), route.Metric(a), n)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestNetnsLive(t *testing.T) { knobtest.Suite(t, liveFixture) }

func TestNetnsDryRunOverLive(t *testing.T) { dryRunOver(t, liveFixture) }

// dryRunOver holds a dry run to the contract too, and to changing nothing.
func dryRunOver(t *testing.T, fixture func(t *testing.T) knobtest.Fixture) {
	knobtest.Suite(t, func(t *testing.T) knobtest.Fixture {
		f := fixture(t)
		host := f.Backend
		originals := make(map[knob.ID]knob.Value)
		for _, p := range f.Writable {
			v, err := host.Read(t.Context(), p.Knob)
			if err != nil {
				t.Fatal(err)
			}
			originals[p.Knob] = v
		}
		f.Backend = knob.NewDryRun(host)
		foreign := f.Foreign
		used := false
		f.Foreign = func(t *testing.T, s knob.Setting) { used = true; foreign(t, s) }
		vanish := f.Vanish
		f.Vanish = func(t *testing.T) { used = true; vanish(t) }
		t.Cleanup(func() {
			for id, v := range originals {
				if used {
					return
				}
				if got, err := host.Read(t.Context(), id); err == nil && got != v {
					t.Errorf("%s: a dry run changed %q to %q", id, v, got)
				}
			}
		})
		// What only the kernel can refuse is not known beforehand.
		var foreseeable []knob.Setting
		for _, s := range f.Invalid {
			if s.Value != "no-such-algorithm" && !strings.HasPrefix(string(s.Value), "1,00000000") {
				foreseeable = append(foreseeable, s)
			}
		}
		f.Invalid = foreseeable
		// A dry run reads back what was written and does not know how a driver rounds.
		f.Messy = slices.DeleteFunc(f.Messy,
			func(m knobtest.Messy) bool { return m.Knob.Attribute() == "rps_flow_cnt" })
		return f
	})
}

// A long list is read whole and written whole: the kernel gives it in one read only, and takes it a
// page at a time.
func TestNetnsLongList(t *testing.T) {
	ns := knobtest.NewNetNS(t)
	b := ns.Backend(t, live.New())
	const id = knob.ID("sysctl:net.ipv4.ip_local_reserved_ports")
	for _, ports := range []int{1, 60, 800, 3000, 32000} {
		var list []string
		for i := range ports {
			list = append(list, strconv.Itoa(2*i+1))
		}
		want := knob.Value(strings.Join(list, ","))
		if err := b.Write(t.Context(), id, want); err != nil {
			t.Fatal(err)
		}
		got, err := b.Read(t.Context(), id)
		if err != nil || got != want {
			t.Errorf("%d ports: wrote %d bytes, read %d, %v", ports, len(want), len(got), err)
		}
	}
	if err := b.Write(t.Context(), id, ""); err != nil {
		t.Errorf("clear: %v", err)
	}
	if got, err := b.Read(t.Context(), id); err != nil || got != "" {
		t.Errorf("cleared list reads %q, %v", got, err)
	}
}

// Of two routes to one destination, a knob names the one in use, and a write changes only that one.
func TestNetnsRouteInUse(t *testing.T) {
	ns := world(t)
	b := ns.Backend(t, live.New())
	if err := b.Write(t.Context(), "route:10.20.0.0/16/initcwnd", "30"); err != nil {
		t.Fatal(err)
	}
	ns.Do(t, func() {
		c, err := nl.Dial()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		routes, err := route.New(c).List()
		if err != nil {
			t.Error(err)
		}
		got := make(map[int]route.Route)
		for _, r := range routes {
			if r.Destination == "10.20.0.0/16" {
				got[r.Priority] = r
			}
		}
		if got[5].InitCwnd != 30 || got[5].MTU != 1300 || got[5].Gateway != "10.9.0.2" || got[50].InitCwnd != 77 ||
			got[50].Gateway != "10.9.0.3" {
			t.Errorf("routes: %+v", got)
		}
	})
}

// Inside a namespace the host's settings are refused with the reason.
func TestNetnsGlobalSettings(t *testing.T) {
	ns := knobtest.NewNetNS(t)
	b := ns.Backend(t, live.New())
	for _, id := range []knob.ID{
		"sysctl:net.core.netdev_max_backlog", // absent here
		"sysctl:net.core.rmem_max",           // for reading only
		"sysctl:vm.zone_reclaim_mode",        // could be written, for the whole host
	} {
		err := b.Write(t.Context(), id, "4")
		if !errors.Is(err, knob.ErrGlobal) || !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(hint(err), "on the host") {
			t.Errorf("write %s: %v, hint %q", id, err, hint(err))
		}
	}
	_, err := b.Read(t.Context(), "sysctl:net.core.netdev_max_backlog")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(hint(err), "on the host") {
		t.Errorf("read: %v, hint %q", err, hint(err))
	}
	var here knob.Place
	ns.Do(t, func() { here = live.Here() })
	if !here.Known || here.InitialNetNS {
		t.Errorf("place inside a namespace: %+v", here)
	}
	d, ok := knob.Catalogue().Lookup("sysctl:net.core.netdev_max_backlog")
	if !ok {
		t.Fatal("not in the catalogue")
	}
	if err := d.Refusal(here); !errors.Is(err, knob.ErrGlobal) || !errors.Is(err, fs.ErrPermission) || hint(err) == "" {
		t.Errorf("refusal: %v", err)
	}
	local, _ := knob.Catalogue().Lookup("sysctl:net.ipv4.tcp_rmem")
	if err := local.Refusal(here); err != nil {
		t.Errorf("a setting of the namespace is refused: %v", err)
	}
}

func hint(err error) string {
	var e *knob.Error
	if errors.As(err, &e) {
		return e.Hint()
	}
	return ""
}

// The catalogue holds for the kernel that runs: what a fresh namespace shows is accepted by its
// definition, and every setting that the catalogue calls the namespace's own is there or unknown to
// this kernel on the host too.
func TestNetnsCatalogueFitsTheKernel(t *testing.T) {
	ns := knobtest.NewNetNS(t)
	host := live.New()
	inside := ns.Backend(t, host)
	here := live.Here()
	seen := 0
	for _, d := range knob.Catalogue().All() {
		if d.Pattern.Kind() != knob.KindSysctl {
			continue
		}
		id := knob.ID(strings.ReplaceAll(string(d.Pattern), "*", "lo"))
		v, err := inside.Read(t.Context(), id)
		_, hostErr := host.Read(t.Context(), id)
		switch {
		case err == nil:
			seen++
			if _, nerr := d.Normalize(v); nerr != nil && d.Shown[v] == "" {
				t.Errorf("%s: the kernel's own value is refused: %v", id, nerr)
			}
			if d.Scope == knob.ScopeGlobal && id.Path()[0] == "net" {
				// Shown, but not for writing: otherwise the scope is wrong.
				var info os.FileInfo
				ns.Do(t, func() { info, err = os.Stat("/proc/sys/" + strings.Join(id.Path(), "/")) })
				if err != nil || info.Mode().Perm()&0o222 != 0 {
					t.Errorf("%s is called global and can be written in a namespace: %v, %v", id, info, err)
				}
			}
		case d.ScopeSince != "" && olderThan(t, d.ScopeSince):
			// Here it is still the host's.
		case hostErr == nil && d.Scope != knob.ScopeGlobal && here.InitialNetNS:
			t.Errorf("%s is called %s and is on the host only: %v", id, d.Scope, err)
		}
	}
	if seen < 40 {
		t.Errorf("only %d settings of the catalogue are in a fresh namespace", seen)
	}
}

// The ranges hold for the kernel that runs: in a namespace that is thrown away both ends of every
// range are taken and read back.
func TestNetnsCatalogueRangesAreTaken(t *testing.T) {
	ns := knobtest.NewNetNS(t)
	b := ns.Backend(t, live.New())
	tried := 0
	for _, d := range knob.Catalogue().All() {
		if d.Pattern.Kind() != knob.KindSysctl || d.Scope == knob.ScopeGlobal {
			continue
		}
		id := knob.ID(strings.ReplaceAll(string(d.Pattern), "*", "lo"))
		original, err := b.Read(t.Context(), id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // an older kernel, or a module that is not loaded
		}
		var ends []knob.Value
		switch {
		case d.Form == knob.FormBool:
			ends = []knob.Value{"0", "1"}
		case d.Form == knob.FormInt && d.Min != nil && d.Max != nil:
			ends = []knob.Value{knob.Value(strconv.FormatInt(*d.Min, 10)), knob.Value(strconv.FormatInt(*d.Max, 10))}
		case d.Form == knob.FormInts && d.Min != nil && d.Max != nil:
			ends = []knob.Value{
				knob.Value(strings.TrimSpace(strings.Repeat(strconv.FormatInt(*d.Max, 10)+" ", d.Count)))}
		}
		for _, v := range append(ends, original) {
			tried++
			if err := b.Write(t.Context(), id, v); err != nil {
				t.Errorf("%v", err)
				continue
			}
			if got, err := b.Read(t.Context(), id); err != nil || got != v {
				t.Errorf("%s: wrote %q, reads %q, %v", id, v, got, err)
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d values tried", tried)
	}
}

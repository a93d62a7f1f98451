package host_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

func TestLiveSnapshot(t *testing.T) {
	s, err := host.Root{}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil || s.Name != name {
		t.Errorf("name %q, want %q (%v)", s.Name, name, err)
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil || s.Kernel != unix.ByteSliceToString(u.Release[:]) {
		t.Errorf("kernel %q (%v)", s.Kernel, err)
	}
	if s.OS != "linux" || s.Arch != runtime.GOARCH || s.MemoryBytes < 1<<20 || len(s.CPUs) == 0 || s.Time.IsZero() {
		t.Errorf("identity %q %q %d bytes, %d CPUs, %v", s.OS, s.Arch, s.MemoryBytes, len(s.CPUs), s.Time)
	}
	for _, knob := range []string{"sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_wmem"} {
		value, ok := s.Setting(knob)
		if _, _, _, isTriple := host.Triple(value); !ok || !isTriple {
			t.Errorf("%s = %q %v", knob, value, ok)
		}
	}
	if !slices.IsSortedFunc(s.Settings, func(a, b host.Setting) int { return strings.Compare(a.Knob, b.Knob) }) {
		t.Error("settings are not sorted")
	}
	lo, ok := s.Interface("lo")
	want, err := net.InterfaceByName("lo")
	if err != nil || !ok || lo.MTUBytes != want.MTU || lo.Index != want.Index || !lo.Virtual {
		t.Errorf("lo %+v (%v)", lo, err)
	}
}

func TestLiveCounters(t *testing.T) {
	before, err := host.Root{}.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Tcp.RetransSegs", "Udp.RcvbufErrors", "TcpExt.TCPTimeouts", "softnet.dropped",
		"softnet.time_squeeze", "softirq.NET_RX", "nic.lo.rx_bytes", "tcpmem.pages", "ctxt",
		"sockets.port_last", "sockets.tcp_tw_max"} {
		if _, ok := before.Values[name]; !ok {
			t.Errorf("%s is not counted", name)
		}
	}
	// What is counted by CPU is read before the sum, and the sum has 32 bits.
	var rx uint64
	for _, cpu := range before.CPUs {
		rx += before.Values[fmt.Sprintf("softirq.NET_RX.%d", cpu.CPU)]
	}
	if sum := before.Values["softirq.NET_RX"]; rx == 0 || uint32(sum-rx) > 1<<31 {
		t.Errorf("NET_RX %d, %d over the processors", sum, rx)
	}
	if len(before.CPUs) < 2 || before.CPUs[0].CPU != -1 || before.CPUs[0].Total() <= 0 {
		t.Errorf("processor time %+v", before.CPUs)
	}
	// A datagram over loopback to a socket of our own is seen.
	send(t)
	after, err := host.Root{}.Counters()
	if err != nil {
		t.Fatal(err)
	}
	d := host.Sub(before, after)
	if d.Values["Udp.OutDatagrams"] == 0 || d.Values["nic.lo.rx_bytes"] < 100 || d.Seconds <= 0 {
		t.Errorf("a datagram of 100 bytes: %d sent, %d bytes over lo in %v s", d.Values["Udp.OutDatagrams"],
			d.Values["nic.lo.rx_bytes"], d.Seconds)
	}
	if len(d.CPUs) != len(after.CPUs) {
		t.Errorf("%d CPUs of %d", len(d.CPUs), len(after.CPUs))
	}
}

func send(t *testing.T) {
	t.Helper()
	to, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := net.Dial("udp4", to.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := from.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := to.ReadFrom(make([]byte, 200)); err != nil {
		t.Fatal(err)
	}
}

// inNamespace runs f on a thread in a network namespace of its own; flags may add a mount
// namespace. The thread is not given back.
func inNamespace(t *testing.T, flags int, f func() error) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	done := make(chan error, 1)
	refused := false
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET | flags); err != nil {
			refused = errors.Is(err, unix.EPERM)
			done <- fmt.Errorf("unshare: %w", err)
			return
		}
		done <- f()
	}()
	err := <-done
	if refused {
		testenv.Missing(t, testenv.NetNS, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// veth makes a pair in the thread's namespace, with addresses and a route with metrics.
func veth() error {
	client, err := nl.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	// Link-local addresses would come by themselves while the test reads. A kernel without IPv6 has
	// no such file.
	err = os.WriteFile("/proc/sys/net/ipv6/conf/default/addr_gen_mode", []byte("1"), 0o644)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(
		client.AddVeth("eth0.100", "peer", -1),
		client.SetUp("lo"), client.SetUp("peer"), client.SetMTU("eth0.100", 1400), client.SetUp("eth0.100"),
		client.AddAddress("eth0.100", "192.0.2.1/24"),
		route.New(client).Add(route.Route{Destination: "198.51.100.0/24", Gateway: "192.0.2.9", Interface: "eth0.100",
			Window: 16384, InitCwnd: 20}),
	)
}

// TestNetnsOfTheThread: what is read is the namespace of the calling thread, also where /sys is
// still that of another namespace. The veth has a dot in its name, as VLANs do.
func TestNetnsOfTheThread(t *testing.T) {
	var s *host.Snapshot
	var c *host.Counters
	inNamespace(t, 0, func() error {
		if err := veth(); err != nil {
			return err
		}
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_rmem", []byte("4096 65536 131072"), 0o644); err != nil {
			return err
		}
		var err error
		if s, err = (host.Root{}).Snapshot(t.Context()); err != nil {
			return err
		}
		c, err = host.Root{}.Counters()
		return err
	})
	for _, i := range s.Interfaces {
		// Some kernels make tunnels and the like in every new namespace; none has a bus.
		if i.Bus != nil || !i.Virtual {
			t.Errorf("%s is not of this namespace: %+v", i.Name, i)
		}
	}
	dev, route, ok := s.InterfaceTo("198.51.100.7")
	if !ok || dev.Name != "eth0.100" || dev.MTUBytes != 1400 || !dev.Virtual || dev.Driver != "veth" || !dev.Up ||
		!dev.Carrier {
		t.Errorf("interface %+v", dev)
	}
	if route.WindowBytes != 16384 || route.InitCwnd != 20 || route.Gateway != "192.0.2.9" {
		t.Errorf("route %+v", route)
	}
	if f, ok := dev.Features["tx-tcp-segmentation"]; !ok || !f.On {
		t.Errorf("features %v", dev.Features)
	}
	if _, ok := dev.Counters["rx_bytes"]; !ok {
		t.Errorf("no statistics without sysfs: %v", dev.Counters)
	}
	if v, _ := s.Setting("sysctl:net.ipv4.tcp_rmem"); v != "4096 65536 131072" {
		t.Errorf("tcp_rmem %q is not this namespace's", v)
	}
	if len(ceiling.All(s)) == 0 || strings.HasPrefix(ceiling.All(s)[0].Name, "link:") {
		t.Errorf("a veth has no line rate: %+v", ceiling.All(s))
	}
	if !slices.ContainsFunc(s.Warnings,
		func(w string) bool { return strings.Contains(w, "another network namespace") }) {
		t.Errorf("nothing said about /sys: %q", s.Warnings)
	}
	if _, ok := c.Values["nic.eth0.100.rx_bytes"]; !ok {
		t.Error("the veth is not counted")
	}
	for name := range c.Values {
		if strings.HasPrefix(name, "ethtool.") || strings.HasSuffix(name, ".rx_crc_errors") {
			t.Errorf("%s is of another namespace's card", name)
		}
	}
}

// TestNetnsLongSetting: a value longer than any first read comes whole. Other readers stop at 128
// bytes or one page.
func TestNetnsLongSetting(t *testing.T) {
	var ports []string
	for p := 1025; p < 65000; p += 4 {
		ports = append(ports, fmt.Sprintf("%d", p))
	}
	want := strings.Join(ports, ",")
	var s *host.Snapshot
	inNamespace(t, 0, func() error {
		f, err := os.OpenFile("/proc/sys/net/ipv4/ip_local_reserved_ports", os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(want)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		s, err = host.Root{}.Snapshot(t.Context())
		return err
	})
	got, _ := s.Setting("sysctl:net.ipv4.ip_local_reserved_ports")
	if got != want {
		t.Errorf("%d bytes of %d came back", len(got), len(want))
	}
}

// TestNetnsCopy: a copy of this host read back is this host again.
func TestNetnsCopy(t *testing.T) {
	// moving skips what changes between two readings.
	moving := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && slices.Contains([]string{"Time", "Counters", "CurrentMHz", "StealRatio", "Entries", "Counts",
			"Symptoms", "Softnet"}, f.Name())
	}, cmp.Ignore())
	unmoved := cmpopts.IgnoreSliceElements(
		func(s host.Setting) bool { return strings.Contains(s.Knob, "nf_conntrack") })
	var live *host.Snapshot
	var entries []hostfs.Entry
	inNamespace(t, unix.CLONE_FS|unix.CLONE_NEWNS, func() error {
		// Nothing mounted here may show outside.
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("private mounts: %w", err)
		}
		if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("mount sysfs: %w", err)
		}
		if err := veth(); err != nil {
			return err
		}
		// A copy between two equal readings is of the same host.
		var err error
		if live, err = (host.Root{}).Snapshot(t.Context()); err != nil {
			return err
		}
		for range 200 {
			if entries, err = (host.Root{}).Copy(t.Context()); err != nil {
				return err
			}
			before := live
			if live, err = (host.Root{}).Snapshot(t.Context()); err != nil {
				return err
			}
			if cmp.Equal(before, live, moving, unmoved, cmpopts.EquateEmpty()) {
				return nil
			}
		}
		return errors.New("the host never stood still")
	})
	archived, err := inMemory(entries).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if dev, ok := live.Interface("eth0.100"); !ok || len(dev.Queues) == 0 {
		t.Errorf("with a sysfs of its own the namespace has queues: %+v", dev)
	}
	if diff := cmp.Diff(live, archived, moving, unmoved, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("archived (-live +archived):\n%s", diff)
	}
	if c, err := inMemory(entries).Counters(); err != nil || len(c.Values) < 100 {
		t.Errorf("counters of the archive: %v %v", c, err)
	}
	if diff := cmp.Diff(entries, copied(t, inMemory(entries)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-copy +copy of the copy):\n%s", diff)
	}
}

func BenchmarkCounters(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (host.Root{}).Counters(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (host.Root{}).Snapshot(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

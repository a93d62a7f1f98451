package sosreport

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl/sockdiag"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// prints runs a command in the network namespace of the calling thread and gives what sos would
// keep of it, errors among it. False: there is no such program.
func prints(command string) (string, bool) {
	words := strings.Fields(command)
	path, err := exec.LookPath(words[0])
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + words[0]) // not in the path of ordinary users
	}
	if err != nil {
		return "", false
	}
	cmd := exec.Command(path, words[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, _ := cmd.CombinedOutput() // A driver that refuses is what a report has too.
	return string(out), true
}

// needTools ends a test when a program that it compares with is missing.
func needTools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		testenv.Program(t, name)
	}
}

// inNamespace runs f on a thread in a network namespace of its own, with a /sys of it. The thread
// is not given back.
func inNamespace(t *testing.T, f func() error) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	done := make(chan error, 1)
	refused := false
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			refused = errors.Is(err, unix.EPERM)
			done <- fmt.Errorf("unshare: %w", err)
			return
		}
		if err := errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("sysfs", "/sys", "sysfs", unix.MS_RDONLY, "")); err != nil {
			done <- fmt.Errorf("a sysfs of the namespace: %w", err)
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

// stage makes links, addresses, routes and disciplines of many kinds. Lines with a question mark
// ask for what a small kernel may lack.
func stage() error {
	// Link-local addresses would come by themselves, and with them packets.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/addr_gen_mode", []byte("1"), 0); err != nil {
		return err
	}
	commands := `ip link set lo up
ip link add v0 type veth peer name v1
ip link add w0 type veth peer name w1
ip link add b0 type bridge
ip link set w0 master b0
? ip link add d0 type dummy
? ip link add link w1 name w1.7 type vlan id 7
? ip link add o0 type bond mode active-backup
? ip link add x0 type vxlan id 7 dev v0 dstport 4789
ip link set v0 mtu 1400 txqueuelen 77 up
ip link set v1 up
ip link set w0 up
ip link set w1 address 02:00:00:00:00:77 up
ip link set b0 up
ip addr add 192.0.2.1/24 dev v0
ip addr add 10.9.0.1 peer 10.9.0.2/32 dev w1
ip addr add 2001:db8::1/64 dev v0 nodad
ip route add 203.0.113.0/24 via 192.0.2.9 metric 42 window 32768 mtu 1300 advmss 1200 initcwnd 20 initrwnd 30 quickack 1
ip route add 198.18.0.0/15 dev b0 src 192.0.2.1 proto static
ip route add 203.0.114.0/24 via 192.0.2.9 mtu lock 1250 rto_min 50ms features ecn
ip route add 203.0.115.0/24 nexthop via 192.0.2.9 nexthop via 192.0.2.8
ip route add blackhole 203.0.116.0/24
ip route add default via 192.0.2.9 proto 18
ip route add default via 192.0.2.9 table 77
ip -6 route add 2001:db8:1::/48 via 2001:db8::9 metric 7 mtu 1280
ip -6 route add default via 2001:db8::ff proto ra
tc qdisc add dev v0 root handle 1: htb default 10
tc class add dev v0 parent 1: classid 1:10 htb rate 8mbit ceil 8mbit
tc qdisc add dev v0 parent 1:10 handle 10: pfifo limit 3
tc qdisc add dev v0 ingress
tc qdisc add dev w0 root handle 2: tbf rate 1mbit burst 10kb limit 30kb
? tc qdisc add dev b0 root fq_codel limit 500 memory_limit 1mb target 7ms
? tc qdisc add dev w1 root handle 4: fq limit 77 maxrate 3mbit nopacing`
	for line := range strings.Lines(commands) {
		line, optional := strings.CutPrefix(strings.TrimSpace(line), "? ")
		words := strings.Fields(line)
		path, err := exec.LookPath(words[0])
		if err != nil {
			path = "/usr/sbin/" + words[0]
		}
		out, err := exec.Command(path, words[1:]...).CombinedOutput()
		if err != nil && !(optional && strings.Contains(strings.ToLower(string(out)), "unknown")) {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
	}
	return nil
}

// liveReport makes a report of the namespace of the calling thread, with the commands of sos. Of
// /proc and /sys it copies what has no other source, so that everything else is read out of texts.
func liveReport(t *testing.T) []hostfs.Entry {
	t.Helper()
	var entries []hostfs.Entry
	command := func(plugin, command string) {
		if text, ok := prints(command); ok {
			entries = append(entries, hostfs.Entry{Name: "sos_commands/" + plugin + "/" + mangle(command),
				Content: []byte(text)})
		}
	}
	for _, c := range []string{"sysctl -a", "uname -a"} {
		command("kernel", c)
	}
	command("date", "date --utc")
	command("host", "hostname")
	for _, c := range []string{"ip -d address", "ip -s -d link", "ip -o addr", "ip route show table all",
		"ip -6 route show table all", "tc -s qdisc show", "nstat -zas", "netstat -s"} {
		command("networking", c)
	}
	names, err := filepath.Glob("/sys/class/net/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range names {
		name := filepath.Base(path)
		target, err := os.Readlink(path)
		if err != nil {
			continue // bonding_masters
		}
		entries = append(entries, hostfs.Entry{Name: "sys/class/net/" + name, Target: target})
		command("networking", "ethtool "+name)
		for _, option := range []string{"-i", "-S", "-g", "-k", "-c", "-l", "-a", "-P", "--show-eee",
			"--show-priv-flags"} {
			command("networking", "ethtool "+option+" "+name)
		}
	}
	for _, name := range []string{"proc/cpuinfo", "proc/stat", "proc/meminfo", "proc/interrupts", "proc/self/net/dev",
		"proc/self/net/softnet_stat", "proc/self/net/sockstat"} {
		b, err := os.ReadFile("/" + strings.Replace(name, "self", "thread-self", 1))
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, hostfs.Entry{Name: name, Content: b})
	}
	return entries
}

// steady leaves of a snapshot what a report made of texts says and what two readings in a row agree
// about.
func steady(s *host.Snapshot) *host.Snapshot {
	untold(s)
	c := &host.Snapshot{Name: s.Name, OS: s.OS, Kernel: s.Kernel, Arch: s.Arch, BootTime: s.BootTime,
		Interfaces: s.Interfaces, Settings: s.Settings, Routes: s.Routes}
	for _, q := range s.Qdiscs {
		// Packets come and go; how a discipline is set stays. What the texts round or leave out is
		// not compared.
		words := make(map[string]string)
		for _, name := range []string{"limit", "flows", "quantum", "ecn", "memory_limit", "drop_batch", "flow_limit",
			"buckets", "pacing", "maxrate", "horizon_drop"} {
			if v, ok := q.Parameters[name]; ok {
				words[name] = v
			}
		}
		// tc does not write a rate that does not limit.
		if words["maxrate"] == "0" {
			delete(words, "maxrate")
		}
		c.Qdiscs = append(c.Qdiscs, host.Qdisc{Interface: q.Interface, Kind: q.Kind, Handle: q.Handle, Parent: q.Parent,
			QdiscState: host.QdiscState{Parameters: words}})
	}
	for i := range c.Interfaces {
		dev := &c.Interfaces[i]
		dev.Counters, dev.Symptoms = nil, nil
		for j := range dev.Queues {
			dev.Queues[j].Counters = nil
		}
		for j := range dev.Interrupts {
			dev.Interrupts[j].Counts, dev.Interrupts[j].Affinity, dev.Interrupts[j].EffectiveAffinity = nil, "", ""
		}
		// Without lspci a report has the address of a card and no more of its bus.
		if dev.Bus != nil {
			address := dev.Bus.Address
			// Of a USB device it is that of its function, since a report lacks the speed by which
			// sysfs identifies the device.
			if device, _, ok := strings.Cut(address, ":"); ok && strings.Contains(device, "-") {
				address = device
			}
			dev.Bus = &host.Bus{Address: address}
		}
		dev.NUMANode = nil
		if dev.Card != nil {
			dev.Card.PCIID, dev.Card.Subsystem = "", ""
		}
		// Only a file of sysfs distinguishes a tap from a tun.
		if dev.Kind == "tap" {
			dev.Kind = "tun"
		}
	}
	return c
}

// agree holds a report of the calling thread's namespace against what package host reads there.
func agree(t *testing.T) error {
	t.Helper()
	for range 200 {
		before, err := host.Root{}.Snapshot(t.Context())
		if err != nil {
			return err
		}
		report := collected(t, liveReport(t))
		after, err := host.Root{}.Snapshot(t.Context())
		if err != nil {
			return err
		}
		got, err := report.Root().Snapshot(t.Context())
		if err != nil {
			return err
		}
		want := steady(after)
		if gocmp.Diff(steady(before), want) != "" {
			continue // Something came or went, such as the speed of a link.
		}
		unknown(want, got, sos4)
		if diff := gocmp.Diff(want, steady(got), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-host +report):\n%s", diff)
		}
		if len(got.Settings) < 30 || len(got.Routes) < 2 || len(got.Interfaces) < 2 {
			t.Errorf("%d settings, %d routes and %d interfaces are no comparison", len(got.Settings), len(got.Routes),
				len(got.Interfaces))
		}
		return nil
	}
	return errors.New("the host never stood still")
}

// What ip, tc, ethtool and sysctl print of a namespace is read as what the kernel says of it.
func TestNetnsAgreesWithTools(t *testing.T) {
	needTools(t, "ip", "tc", "ethtool", "sysctl")
	inNamespace(t, func() error {
		if err := stage(); err != nil {
			return err
		}
		return agree(t)
	})
}

// Of real cards their drivers say in text what they say by netlink.
func TestGuestAgreesWithTools(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	run := func(command string) {
		words := strings.Fields(command)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	// What came with the modules costs ten commands each, and is what the namespace of the other
	// test has.
	for _, name := range []string{"ifb0", "ifb1", "dummy0", "bond0"} {
		if _, err := net.InterfaceByName(name); err == nil {
			run("ip link delete " + name)
		}
	}
	models := []string{"e1000", "e1000-82545em", "e1000e", "virtio-net-pci", "vmxnet3"}
	for _, model := range models {
		run("ip link set " + guesttest.Interface(t, model) + " up")
	}
	for _, model := range models {
		carrier(t, guesttest.Interface(t, model))
	}
	parent := guesttest.Interface(t, "e1000e")
	for _, command := range []string{
		"ip address add 192.168.77.1/24 dev " + parent, "ip link add link " + parent + " name " + parent +
			".100 type vlan id 100",
		"ip link set " + parent + ".100 up", "ip link add bond9 type bond mode 802.3ad",
		"ip route add default via 192.168.77.254",
		"tc qdisc replace dev " + parent + " root fq_codel",
		"tc qdisc replace dev " + guesttest.Interface(t, "vmxnet3") + " root fq maxrate 1gbit",
	} {
		run(command)
	}
	if err := agree(t); err != nil {
		t.Fatal(err)
	}
}

// carrier waits until a link is up at both ends.
func carrier(t *testing.T, name string) {
	t.Helper()
	const pause = 10 * time.Millisecond // between two looks at the carrier
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(pause) {
		b, err := os.ReadFile("/sys/class/net/" + name + "/carrier")
		switch {
		case err == nil && bytes.HasPrefix(b, []byte("1")):
			return
		case time.Now().After(deadline):
			t.Fatalf("%s: carrier %q, %v", name, b, err)
		}
	}
}

// What nstat and netstat print of the counters of a namespace is what its files of /proc have.
func TestNetnsCounters(t *testing.T) {
	needTools(t, "ip", "nstat", "netstat")
	inNamespace(t, func() error {
		if out, ok := prints("ip link set lo up"); !ok || out != "" {
			return fmt.Errorf("lo: %s", out)
		}
		if err := traffic(); err != nil {
			return err
		}
		// Connections that have been closed go on for a moment: what is compared is what did not
		// change meanwhile.
		var want map[string]uint64
		texts := make(map[string]string)
		for tries := 0; ; tries++ {
			before, err := kernelCounters()
			if err != nil {
				return err
			}
			for _, command := range []string{"nstat -zas", "netstat -s"} {
				texts[command], _ = prints(command)
			}
			if want, err = kernelCounters(); err != nil {
				return err
			}
			if maps.Equal(before, want) {
				break
			}
			if tries == 1000 {
				return errors.New("the counters never stood still")
			}
		}
		for command, read := range map[string]struct {
			parse func(string) printed.Counters
			least int // counters that the text must have
		}{"nstat -zas": {printed.ParseNstat, 200}, "netstat -s": {printed.ParseNetstat, 25}} {
			text, got := texts[command], procfs.NewCounts(512)
			for name, table := range read.parse(text).Tables() {
				parse := procfs.ParseSNMP
				if name == "snmp6" {
					parse = procfs.ParseSNMP6
				}
				if err := parse([]byte(table), got); err != nil {
					return fmt.Errorf("%s: %s: %w", command, name, err)
				}
			}
			compared := 0
			for name, n := range got.Values {
				if v, ok := want[name]; !ok || v != n {
					t.Errorf("%s: %s = %d, the kernel has %d (%v)", command, name, n, v, ok)
				}
				compared++
			}
			if compared < read.least {
				t.Errorf("%s: only %d counters read:\n%s", command, compared, text)
			}
			// What netstat writes in words that are not known would be missed in silence: each line
			// of these groups with a number in it is a counter.
			if command == "netstat -s" {
				n := 0
				for _, group := range read.parse(text) {
					n += len(group)
				}
				if lines := counted(text); lines != n {
					t.Errorf("netstat prints %d counters, %d were read:\n%s", lines, n, text)
				}
			}
		}
		return nil
	})
}

// counted counts the counters in the text of netstat -s: lines with a number, but for the
// histograms of ICMP, which stand deeper.
func counted(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "        ") &&
			strings.ContainsAny(line, "0123456789") {
			n++
		}
	}
	return n
}

// kernelCounters are those of the calling thread's namespace that nstat and netstat print.
func kernelCounters() (map[string]uint64, error) {
	set := procfs.NewCounts(512)
	for name, parse := range map[string]func([]byte, *procfs.Counts) error{"snmp": procfs.ParseSNMP,
		"netstat": procfs.ParseSNMP, "snmp6": procfs.ParseSNMP6} {
		b, err := os.ReadFile("/proc/thread-self/net/" + name)
		if err == nil {
			err = parse(b, set)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return set.Values, nil
}

// traffic counts something of TCP and UDP: connections, datagrams, one without a receiver, and one
// connection that is refused.
func traffic() error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	far, err := l.Accept()
	if err != nil {
		return err
	}
	defer far.Close()
	if _, err := c.Write(bytes.Repeat([]byte("x"), 100_000)); err != nil {
		return err
	}
	for read := 0; read < 100_000; {
		n, err := far.Read(make([]byte, 1<<16))
		if err != nil {
			return err
		}
		read += n
	}
	if refused, err := net.Dial("tcp4", "127.0.0.1:1"); err == nil {
		refused.Close()
	}
	nobody, err := net.Dial("udp4", "127.0.0.1:2")
	if err != nil {
		return err
	}
	defer nobody.Close()
	_, err = nobody.Write([]byte("x"))
	return err
}

// What ss prints of sockets is what the kernel says of them by netlink: listeners that are full,
// datagram sockets that dropped, connections.
func TestNetnsSockets(t *testing.T) {
	needTools(t, "ip", "ss")
	inNamespace(t, func() error {
		if out, ok := prints("ip link set lo up"); !ok || out != "" {
			return fmt.Errorf("lo: %s", out)
		}
		six, err := net.Listen("tcp", "[::]:5001")
		if err != nil {
			return err
		}
		defer six.Close()
		full, err := net.Listen("tcp4", "127.0.0.1:5000")
		if err != nil {
			return err
		}
		defer full.Close()
		for range 2 {
			c, err := net.Dial("tcp4", "127.0.0.1:5000") // never accepted
			if err != nil {
				return err
			}
			defer c.Close()
		}
		to, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5002})
		if err != nil {
			return err
		}
		defer to.Close()
		if err := to.SetReadBuffer(2304); err != nil {
			return err
		}
		from, err := net.Dial("udp4", "127.0.0.1:5002")
		if err != nil {
			return err
		}
		defer from.Close()
		for range 30 {
			if _, err := from.Write(make([]byte, 500)); err != nil {
				return err
			}
		}

		// The acknowledgement of a connection, or a datagram, may still be on its way: what is compared
		// is what did not change meanwhile, once every kind of queue is full.
		dropped := func(s printed.Socket) bool { return s.Memory.Drops > 0 }
		for range 1000 {
			before, err := kernelSockets()
			if err != nil {
				return err
			}
			text, _ := prints("ss -peaonmi")
			after, err := kernelSockets()
			if err != nil {
				return err
			}
			if gocmp.Diff(before, after, sameAddress) != "" ||
				!slices.ContainsFunc(slices.Collect(maps.Values(after)), dropped) {
				continue
			}
			got := make(map[uint64]printed.Socket)
			queued := false
			for _, s := range printed.ParseSockets(text) {
				queued = queued || s.State == "LISTEN" && s.ReceiveQueue == 2
				s.State = ""
				got[s.Cookie] = s
			}
			if diff := gocmp.Diff(after, got, sameAddress); diff != "" {
				t.Errorf("(-kernel +ss):\n%s", diff)
			}
			if len(got) < 7 || !queued {
				t.Errorf("%d sockets, a queue %v: no comparison\n%s", len(got), queued, text)
			}
			return nil
		}
		return errors.New("the sockets never stood still")
	})
}

var sameAddress = gocmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

// kernelSockets are those of the calling thread's namespace, by cookie.
func kernelSockets() (map[uint64]printed.Socket, error) {
	all := make(map[uint64]printed.Socket)
	for protocol, states := range map[sockdiag.Protocol][]sockdiag.State{
		sockdiag.TCP: {sockdiag.Established, sockdiag.FinWait1, sockdiag.CloseWait, sockdiag.Listen},
		sockdiag.UDP: {sockdiag.Established, sockdiag.Closed},
	} {
		err := sockdiag.Each(sockdiag.Query{Protocol: protocol, States: states}, func(s *sockdiag.Socket) bool {
			m := s.Memory
			all[s.Cookie] = printed.Socket{
				Protocol: protocol.String(), ReceiveQueue: s.ReceiveQueue, SendQueue: s.SendQueue, Local: s.Local,
				Remote: s.Remote, Cookie: s.Cookie, Memory: printed.SocketMemory{
					ReceiveBytes: int64(m.Receive), ReceiveLimitBytes: int64(m.ReceiveLimit), SendBytes: int64(m.Send),
					SendLimitBytes: int64(m.SendLimit),
					ForwardBytes:   int64(m.Forward), QueuedBytes: int64(m.Queued), OptionBytes: int64(m.Option),
					BacklogBytes: int64(m.Backlog), Drops: uint64(m.Drops),
				},
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

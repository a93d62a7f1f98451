package journal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
)

// inWorld runs a test in a network and mount namespace of its own, on a thread that ends with them.
// In it stand a veth pair a0 and b0, both up, with an address and a route, and a /sys of its own.
func inWorld(t *testing.T, f func()) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	var setUp error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // Never unlocked: the namespaces end with the thread.
		if setUp = buildWorld(); setUp == nil {
			settle()
			f() // May end this goroutine by t.FailNow; done is closed all the same.
		}
	}()
	<-done
	if errors.Is(setUp, unix.EPERM) {
		testenv.Missing(t, testenv.NetNS, setUp)
	}
	if setUp != nil {
		t.Fatalf("private world: %v", setUp)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func buildWorld() error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return err
	}
	return run(`
		sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip link set lo up
		ip link add a0 numrxqueues 2 numtxqueues 2 type veth peer name b0
		ip addr add 10.9.0.1/24 dev a0
		ip link set a0 up
		ip link set b0 up
		ip route add 10.50.0.0/16 via 10.9.0.2 dev a0 initcwnd 12`)
}

// settle waits until both links are up and have their addresses: the kernel works on that after the
// commands have ended. It holds rtnl from the first sign of each work to its end, when routes have
// followed their links and addresses, and a request of ethtool waits for rtnl.
func settle() {
	for {
		addresses, _ := os.ReadFile("/proc/thread-self/net/if_inet6") // What is missing is waited for.
		up := true
		for _, link := range []string{"a0", "b0"} {
			state, _ := os.ReadFile("/sys/class/net/" + link + "/operstate")
			// 80: permanent, and not tentative any more.
			up = up && string(state) == "up\n" && strings.Contains(string(addresses), fmt.Sprintf(" 80 %8s\n", link))
		}
		if up {
			ethtool("a0", cardRequests["rings"]) // Its answer does not matter here.
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// run runs commands of a shell, with the programs for administrators in reach.
func run(script string) error {
	command := exec.Command("sh", "-ec", script)
	command.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// snapshot is a namespace as the kernel reports it, byte by byte: all sysctls that can be written,
// attributes and NIC settings of links, queueing disciplines, routes, files of queues. It is read
// past the code that the journal uses, so that a mistake there does not hide itself.
type snapshot map[string]string

func takeSnapshot(t *testing.T) snapshot {
	t.Helper()
	s := snapshot{}
	err := errors.Join(s.files("/proc/sys/net"), s.files("/sys/class/net/a0/queues"),
		s.files("/sys/class/net/b0/queues"),
		s.dump("link", unix.RTM_GETLINK, unix.SizeofIfInfomsg, unix.SizeofIfInfomsg, volatileLink),
		s.dump("qdisc", unix.RTM_GETQDISC, sizeofTcmsg, sizeofTcmsg, volatileQdisc),
		s.dump("route", unix.RTM_GETROUTE, unix.SizeofRtMsg, unix.SizeofRtMsg, volatileRoute))
	for _, link := range []string{"a0", "b0"} {
		for name, request := range cardRequests {
			s["ethtool "+link+" "+name] = ethtool(link, request)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files takes in the content of all files below a directory that may be written.
func (s snapshot) files(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode()&0o200 == 0 {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error()) // Some are for writing alone, some not set up: that is a value too.
		}
		s[path] = string(data)
		return nil
	})
}

// Attributes that change without any write. The numbers are those of rtnetlink(7) headers:
// linux/if_link.h, linux/rtnetlink.h.
var (
	// IFLA_STATS, IFLA_STATS64, IFLA_AF_SPEC (holds counters of IPv6), IFLA_CARRIER_CHANGES,
	// IFLA_CARRIER_UP_COUNT, IFLA_CARRIER_DOWN_COUNT.
	volatileLink = map[uint16]bool{7: true, 23: true, 26: true, 35: true, 47: true, 48: true}
	// TCA_STATS, TCA_XSTATS, TCA_STATS2.
	volatileQdisc = map[uint16]bool{3: true, 4: true, 7: true}
	// RTA_CACHEINFO.
	volatileRoute = map[uint16]bool{12: true}
)

// sizeofTcmsg is the size of struct tcmsg in linux/rtnetlink.h.
const sizeofTcmsg = 20

// dump takes in the answers to one dump request of rtnetlink, without the attributes that change
// without any write.
func (s snapshot) dump(name string, request uint16, requestHeader, header int, volatile map[uint16]bool) error {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	message := make([]byte, unix.NLMSG_HDRLEN+requestHeader)
	binary.NativeEndian.PutUint32(message, uint32(len(message)))
	binary.NativeEndian.PutUint16(message[4:], request)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(socket, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buffer, all := make([]byte, 1<<17), []string{}
	for {
		size, _, err := unix.Recvfrom(socket, buffer, 0)
		if err != nil {
			return err
		}
		for data := buffer[:size]; len(data) >= unix.NLMSG_HDRLEN; {
			length := int(binary.NativeEndian.Uint32(data))
			kind := binary.NativeEndian.Uint16(data[4:])
			switch kind {
			case unix.NLMSG_DONE:
				slices.Sort(all) // The order is none of settings: links that go down and up change it.
				for n, text := range all {
					s[fmt.Sprintf("%s %d", name, n)] = text
				}
				return nil
			case unix.NLMSG_ERROR:
				return fmt.Errorf("dump %s: %w", name,
					unix.Errno(-int32(binary.NativeEndian.Uint32(data[unix.NLMSG_HDRLEN:]))))
			}
			body := data[unix.NLMSG_HDRLEN:length]
			text := fmt.Sprintf("%x", body[:header])
			for rest := body[header:]; len(rest) >= unix.SizeofRtAttr; {
				size := int(binary.NativeEndian.Uint16(rest))
				if kind := binary.NativeEndian.Uint16(rest[2:]) & 0x3fff; !volatile[kind] {
					text += fmt.Sprintf(" %d=%x", kind, rest[unix.SizeofRtAttr:size])
				}
				rest = rest[min(len(rest), align(size)):]
			}
			all = append(all, text)
			data = data[min(len(data), align(length)):]
		}
	}
}

// align is NLMSG_ALIGN.
func align(n int) int { return (n + 3) &^ 3 }

// cardRequests are the questions of linux/ethtool.h, with the size of their answers.
var cardRequests = map[string]struct {
	command uint32
	size    int
}{
	"coalesce": {0x0e, 92}, "rings": {0x10, 36}, "pause": {0x12, 16}, "channels": {0x3c, 36},
	"features": {0x3a, 8 + 16*4},
}

// ethtool asks a NIC by ioctl and gives the answer, or the error, as text.
func ethtool(link string, request struct {
	command uint32
	size    int
}) string {
	data := make([]byte, request.size)
	binary.NativeEndian.PutUint32(data, request.command)
	if request.command == 0x3a {
		binary.NativeEndian.PutUint32(data[4:], 4) // Room for four blocks of 32 features.
	}
	var ifreq struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(ifreq.name[:], link)
	ifreq.data = unsafe.Pointer(&data[0])
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(socket)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq)))
	runtime.KeepAlive(data)
	if errno != 0 {
		return errno.Error()
	}
	return fmt.Sprintf("%x", data)
}

// differences lists what is not as it was.
func (s snapshot) differences(now snapshot) []string {
	var all []string
	for key, was := range s {
		if is, ok := now[key]; !ok || is != was {
			all = append(all, fmt.Sprintf("%s: was %q, is %q", key, strings.TrimSpace(was), strings.TrimSpace(is)))
		}
	}
	for key, is := range now {
		if _, ok := s[key]; !ok {
			all = append(all, fmt.Sprintf("%s: is new: %q", key, is))
		}
	}
	return all
}

// TestSnapshotSeesEveryChange: a check that overlooks a change would prove nothing.
func TestSnapshotSeesEveryChange(t *testing.T) {
	inWorld(t, func() {
		before := takeSnapshot(t)
		if len(before) < 300 {
			t.Errorf("only %d things in a snapshot", len(before))
		}
		if d := before.differences(takeSnapshot(t)); len(d) != 0 {
			t.Errorf("nothing was done, and yet: %q", d)
		}
		for change, back := range map[string]string{
			"sysctl -qw net.ipv4.tcp_notsent_lowat=9999":        "sysctl -qw net.ipv4.tcp_notsent_lowat=4294967295",
			"sysctl -qw net.ipv4.conf.a0.rp_filter=2":           "sysctl -qw net.ipv4.conf.a0.rp_filter=0",
			"ip link set a0 mtu 9000":                           "ip link set a0 mtu 1500",
			"ip link set b0 txqueuelen 77":                      "ip link set b0 txqueuelen 1000",
			"ethtool -K a0 tso off":                             "ethtool -K a0 tso on",
			"ethtool -L a0 rx 1 tx 1":                           "ethtool -L a0 rx 2 tx 2",
			"tc qdisc add dev a0 root pfifo limit 9":            "tc qdisc del dev a0 root",
			"ip route replace 10.50.0.0/16 via 10.9.0.2 dev a0": "ip route replace 10.50.0.0/16 via 10.9.0.2 dev a0 initcwnd 12",
			"echo 1 > /sys/class/net/a0/queues/rx-0/rps_cpus":   "echo 0 > /sys/class/net/a0/queues/rx-0/rps_cpus",
			"ip route add 10.51.0.0/16 via 10.9.0.2 dev a0":     "ip route del 10.51.0.0/16",
			"ip link set a0 gso_max_size 40000":                 "ip link set a0 gso_max_size 65536",
			"sysctl -qw net.ipv4.tcp_rmem='4096 131072 33554431'": "sysctl -qw net.ipv4.tcp_rmem='" +
				strings.TrimSpace(before["/proc/sys/net/ipv4/tcp_rmem"]) + "'",
		} {
			if err := run(change); err != nil {
				t.Errorf("%s: %v", change, err)
				continue
			}
			if len(before.differences(takeSnapshot(t))) == 0 {
				t.Errorf("%s: not seen", change)
			}
			if err := run(back); err != nil {
				t.Errorf("%s: %v", back, err)
			}
			if d := before.differences(takeSnapshot(t)); len(d) != 0 {
				t.Errorf("%s, %s: still %q", change, back, d)
			}
		}
	})
}

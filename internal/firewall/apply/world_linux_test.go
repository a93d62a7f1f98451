package apply_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// sources is how many addresses send packets; the last one is dropped.
const sources = 24

// accounting counts each source at the hook prerouting. It stands between two tables that see the
// same packets: one counts what arrives of each source, the other what has passed.
func accounting() string {
	var b strings.Builder
	b.WriteString("table ip account {\n\tchain count {\n\t\ttype filter hook prerouting priority raw; policy drop;\n" +
		"\t\tmeta mark 7 counter comment \"never\"\n")
	for i := range sources {
		verdict := "accept"
		if i == sources-1 {
			verdict = "drop"
		}
		fmt.Fprintf(&b, "\t\tip saddr 10.7.0.%d counter %s comment \"source %d\"\n", i+1, verdict, i)
	}
	b.WriteString("\t}\n}\ntable ip witness {\n\tset early {\n\t\ttype ipv4_addr\n\t\tcounter\n\t\telements = { ")
	for i := range sources {
		fmt.Fprintf(&b, "10.7.0.%d, ", i+1)
	}
	b.WriteString("}\n\t}\n\tset late {\n\t\ttype ipv4_addr\n\t\tcounter\n\t\telements = { ")
	for i := range sources {
		fmt.Fprintf(&b, "10.7.0.%d, ", i+1)
	}
	b.WriteString("}\n\t}\n\tchain first { type filter hook prerouting priority -450; ip saddr @early; }\n" +
		"\tchain last { type filter hook prerouting priority -200; ip saddr @late drop; }\n}\n")
	return b.String()
}

// programs are those whose rules are applied.
var programs = []ruleset.Program{ruleset.NFT, ruleset.IPTablesNFT, ruleset.IPTablesLegacy}

// xtAccounting are the same rules of iptables, in the table raw, which stands between the witnesses
// as well.
func xtAccounting() string {
	var b strings.Builder
	b.WriteString("*raw\n:PREROUTING DROP [77:7700]\n" +
		"-A PREROUTING -m mark --mark 0x7 -m comment --comment never\n")
	for i := range sources {
		verdict := "ACCEPT"
		if i == sources-1 {
			verdict = "DROP"
		}
		fmt.Fprintf(&b, "-A PREROUTING -s 10.7.0.%d/32 -m comment --comment \"source %d\" -j %s\n", i+1, i, verdict)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// xt runs a program of iptables with the lock of this namespace alone.
func xt(t *testing.T, program ruleset.Program, in, what string, args ...string) string {
	t.Helper()
	c := exec.Command(read.XTables(program, "ip", what), args...)
	c.Stdin, c.Env = strings.NewReader(in), append(os.Environ(), "XTABLES_LOCKFILE=/proc/self/status")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", c.Path, args, err)
	}
	return string(out)
}

// traffic sends packets of all sources into this namespace, without a pause that is longer than the
// scheduler's.
type traffic struct {
	ahead   int // rules in front of those that count sources
	program ruleset.Program
	t       *testing.T
	fd      int
	to      unix.SockaddrLinklayer
	sent    [sources]atomic.Uint64
	run     atomic.Bool
	idle    chan struct{} // holds one while nothing is sent
	stop    atomic.Bool
	done    chan struct{}
}

// newTraffic loads the accounting rules, and prepares packets. A network interface of its own
// brings them in.
func newTraffic(t *testing.T, program ruleset.Program) *traffic {
	t.Helper()
	sh(t, "ip link set lo up; sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; "+
		"ip link add a0 type veth peer name b0; ip link set a0 arp off up; ip link set b0 arp off up")
	rules, witness, _ := strings.Cut(accounting(), "table ip witness")
	// A lock of its own: other tests need not wait for this one.
	t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "xtables.lock"))
	if program == ruleset.NFT {
		nft(t, rules)
	} else {
		xt(t, program, xtAccounting(), "restore", "-c")
	}
	nft(t, "table ip witness"+witness)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := net.InterfaceByName("a0")
	b, errB := net.InterfaceByName("b0")
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	tr := &traffic{program: program, t: t, fd: fd,
		to:   unix.SockaddrLinklayer{Protocol: 0x0008, Ifindex: b.Index, Halen: 6},
		idle: make(chan struct{}, 1), done: make(chan struct{})}
	copy(tr.to.Addr[:], a.HardwareAddr)
	go tr.loop(a.HardwareAddr)
	return tr
}

func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// loop sends. The socket is in the right namespace, whatever thread this is.
func (tr *traffic) loop(address net.HardwareAddr) {
	defer close(tr.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var frames [sources][]byte
	for i := range frames {
		h := make([]byte, 28)
		h[0], h[3], h[8], h[9] = 0x45, 28, 64, 17
		copy(h[12:], []byte{10, 7, 0, byte(i + 1), 10, 8, 0, 1})
		var sum uint32
		for k := 0; k < 20; k += 2 {
			sum += uint32(binary.BigEndian.Uint16(h[k:]))
		}
		sum = sum>>16 + sum&0xffff
		binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
		h[25] = 8 // length of UDP; no checksum
		frames[i] = append(append(append([]byte{}, address...), 2, 0, 0, 0, 0, 9, 8, 0), h...)
	}
	for n := 0; !tr.stop.Load(); n++ {
		if !tr.run.Load() {
			select {
			case tr.idle <- struct{}{}:
			default:
			}
			time.Sleep(100 * time.Microsecond)
			continue
		}
		i := n % sources
		if err := unix.Sendto(tr.fd, frames[i], 0, &tr.to); err != nil {
			tr.t.Errorf("send: %v", err)
			return
		}
		tr.sent[i].Add(1)
		if n%8 == 0 {
			time.Sleep(50 * time.Microsecond) // the machine has other work
		}
	}
}

func (tr *traffic) start() { tr.run.Store(true) }

// pause stops sending and returns when the kernel has counted all that was sent.
func (tr *traffic) pause() {
	tr.t.Helper()
	tr.run.Store(false)
	select {
	case <-tr.idle: // may be old
	default:
	}
	<-tr.idle
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		early, _ := witnesses(tr.t)
		same := true
		for i := range early {
			same = same && early[i] == tr.sent[i].Load()
		}
		if same {
			// The last packet may be at work in a later rule still. Packets hold rcu, and this call
			// waits for all that do (MEMBARRIER_CMD_GLOBAL of membarrier(2)).
			if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, 1, 0, 0); errno != 0 {
				tr.t.Fatal(errno)
			}
			return
		}
		if time.Now().After(until) {
			tr.t.Fatalf("of %v packets only %v arrived", tr.total(), early)
		}
	}
}

func (tr *traffic) total() (n uint64) {
	for i := range tr.sent {
		n += tr.sent[i].Load()
	}
	return n
}

func (tr *traffic) end() {
	tr.stop.Store(true)
	<-tr.done
	_ = unix.Close(tr.fd)
}

// witnesses reads what arrived of each source, and what passed.
func witnesses(t *testing.T) (early, late [sources]uint64) {
	t.Helper()
	w := tableOf(t, "witness")
	for k, into := range map[string]*[sources]uint64{"early": &early, "late": &late} {
		for _, e := range w.Set(k).Elements {
			into[sourceOf(t, e.Key[0])] = e.Counter.Packets
		}
	}
	return early, late
}

func sourceOf(t *testing.T, r ruleset.Range) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(ruleset.Source.FormatRange(r), "10.7.0."))
	if err != nil {
		t.Fatal(err)
	}
	return n - 1
}

func tableOf(t *testing.T, name string) *ruleset.Table {
	t.Helper()
	out, err := exec.Command("nft", "-j", "list", "table", "ip", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := read.NFT(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return r.Table("ip", name)
}

// account reads the rules whose counters are compared.
func (tr *traffic) account() *ruleset.Table {
	tr.t.Helper()
	if tr.program == ruleset.NFT {
		return tableOf(tr.t, "account")
	}
	r, err := read.IPTables(strings.NewReader(xt(tr.t, tr.program, "", "save", "-c", "-t", "raw")), nil)
	if err != nil {
		tr.t.Fatal(err)
	}
	return r.Table("ip", "raw")
}

// rules returns the text of those rules.
func (tr *traffic) rules() string {
	if tr.program == ruleset.NFT {
		return listed(tr.t)
	}
	return xt(tr.t, tr.program, "", "save", "-c", "-t", "raw")
}

// counted reads what the rules have counted of each source: in a rule or in an element, and apart
// from these what is carried.
func (tr *traffic) counted() (inRules, carried [sources]uint64) {
	t := tr.t
	t.Helper()
	table := tr.account()
	for _, s := range table.Sets {
		for _, e := range s.Elements {
			if e.Counter != nil {
				inRules[sourceOf(t, e.Key[0])] += e.Counter.Packets
			}
		}
	}
	for _, c := range table.Chains {
		for _, r := range c.Rules {
			all := r.Counters()
			if len(all) == 0 {
				continue
			}
			if c.Name == "linerate_carry" {
				// Counters have the numbers of their rules, and the first rule counts no source, as those
				// ahead of it.
				n, err := strconv.Atoi(r.Comment)
				if err != nil {
					t.Fatal(err)
				}
				carried[n-1-tr.ahead] += all[0].Packets
			} else if n, ok := strings.CutPrefix(r.Comment, "source "); ok {
				i, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				inRules[i] += all[0].Packets
			} else if tr.program == ruleset.NFT && c.Name != "count" && !strings.HasPrefix(r.Comment, "house ") {
				t.Fatalf("chain %s is left over", c.Name)
			}
		}
	}
	return inRules, carried
}

// exact stops the traffic, and checks that every packet was counted once, and that the one source
// that is dropped never passed. It returns what is carried.
func (tr *traffic) exact(what string) (carry uint64) {
	tr.t.Helper()
	tr.pause()
	early, late := witnesses(tr.t)
	inRules, carried := tr.counted()
	for i := range early {
		if inRules[i]+carried[i] != early[i] {
			tr.t.Errorf("%s: source %d: %d packets arrived, %d are in its counter and %d carried", what, i, early[i], inRules[i],
				carried[i])
		}
		want := early[i]
		if i == sources-1 {
			want = 0
		}
		if late[i] != want {
			tr.t.Errorf("%s: source %d: %d packets passed, want %d", what, i, late[i], want)
		}
		carry += carried[i]
	}
	if tr.t.Failed() {
		tr.t.Fatalf("%s:\n%s", what, tr.rules())
	}
	return carry
}

package rewrite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/measure"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// batch is how many frames one system call sends, and rounds how often each router gets them.
const (
	batch  = 32
	rounds = 300
)

// router is a network namespace that forwards what it is sent from one veth to another, whose
// queueing discipline drops it behind the rules.
type router struct {
	name        string
	load        func(context.Context) error // in the namespace
	counters    func(context.Context) ([]uint64, error)
	space       *os.File
	socket      int
	outbox      *sys.Outbox
	nanoseconds []float64 // of CPU time for each packet of a batch
	partial     bool      // it has not all counters, and shows what a part of the work takes
}

func (r *router) open(ctx context.Context) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	var err error
	if r.space, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	for _, c := range []string{"link add lr0 address 02:00:00:00:00:01 type veth peer name lrpeer0",
		"link add lr1 address 02:00:00:00:00:02 type veth peer name lrpeer1", "link set lo up", "link set lr0 arp off up",
		"link set lrpeer0 arp off up", "link set lr1 arp off up", "link set lrpeer1 arp off up",
		"route add default dev lr1"} {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, out)
		}
	}
	for name, value := range map[string]string{"ip_forward": "1", "conf/all/rp_filter": "0", "conf/lr0/rp_filter": "0"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0o644); err != nil {
			return err
		}
	}
	links, err := nl.Dial()
	if err != nil {
		return err
	}
	defer links.Close()
	if err := links.ReplaceQdisc("lr1", "blackhole"); err != nil {
		return err
	}
	if r.load != nil {
		if err := r.load(ctx); err != nil {
			return err
		}
	}
	if r.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	text, err := os.ReadFile("/sys/class/net/lrpeer0/ifindex")
	if err != nil { // /sys is that of another namespace
		out, err := exec.CommandContext(ctx, "ip", "-o", "link", "show", "lrpeer0").Output()
		if err != nil {
			return err
		}
		text, _, _ = bytes.Cut(out, []byte(":"))
	}
	index, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := unix.Bind(r.socket, &unix.SockaddrLinklayer{Protocol: 0x0008, Ifindex: index}); err != nil {
		return err
	}
	r.outbox = sys.NewOutbox(batch)
	for i := range batch {
		r.outbox.Set(i, houseFrame(i), 0)
	}
	return nil
}

// houseFrame is a frame from or to a house, of TCP or UDP.
func houseFrame(i int) []byte {
	b := make([]byte, 14+20+20)
	copy(b, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0})
	h := b[14:34]
	h[0], h[3], h[8], h[9] = 0x45, 40, 64, []byte{6, 17}[i/2%2]
	house, world := []byte{10, 9, byte(i * 39 / (batch - 1)), 7}, []byte{198, 51, 100, 7}
	if i%2 == 1 {
		house, world = world, house
	}
	copy(h[12:], house)
	copy(h[16:], world)
	var sum uint32
	for k := 0; k < len(h); k += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[k:]))
	}
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum>>16+sum&0xffff))
	b[34+5] = 20 // the length of UDP
	return b
}

func (r *router) send() error {
	for left := batch; left > 0; {
		n, err := r.outbox.Send(r.socket, left)
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		left -= n
	}
	return nil
}

// restore returns what loads a text into the namespace of the thread.
func restore(p ruleset.Program, text string) func(context.Context) error {
	return func(ctx context.Context) error { return measure.Load(ctx, measure.Rules{Program: p, Text: text}) }
}

// piped returns what runs a program with a text.
func piped(text string, name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		c := exec.CommandContext(ctx, name, args...)
		c.Stdin = strings.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %.300s", name, err, out)
		}
		return nil
	}
}

// counted returns what the counters of the rules say, those of rules that only lead to others too.
func counted(name string, args ...string) func(context.Context) ([]uint64, error) {
	return func(ctx context.Context) ([]uint64, error) {
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			return nil, err
		}
		var all []uint64
		if name == "ipset" {
			for _, line := range strings.Split(string(out), "\n") {
				if _, n, ok := strings.Cut(line, " packets "); ok {
					n, _, _ = strings.Cut(n, " ")
					v, err := strconv.ParseUint(n, 10, 64)
					if err != nil {
						return nil, err
					}
					all = append(all, v)
				}
			}
			return all, nil
		}
		r, err := read.Any(out)
		if err != nil {
			return nil, err
		}
		for c := range equal.Counters(r) {
			all = append(all, c.Packets)
		}
		return all, nil
	}
}

// routers are all ways to count the packets of forty houses.
func routers(b *testing.B) []*router {
	text := func(r *ruleset.Ruleset) string {
		var s strings.Builder
		if err := rewrite.Write(&s, r); err != nil {
			b.Fatal(err)
		}
		return s.String()
	}
	shorter := func(r *ruleset.Ruleset) string {
		got := rewrite.Optimise(r, equal.Usual())
		if got.Proof.Answer != equal.Equal || len(got.Changed) == 0 {
			b.Fatalf("%s %s", got.Proof.Answer, got.Proof.What)
		}
		return text(got.Rules)
	}
	// All counters begin at zero.
	zero := func(r *ruleset.Ruleset) *ruleset.Ruleset {
		for c := range equal.Counters(r) {
			*c = ruleset.Counter{}
		}
		return r
	}
	nft, xt := zero(houses(ruleset.NFT)), zero(houses(ruleset.IPTablesLegacy))
	list := counted("nft", "-j", "list", "ruleset")
	all := []*router{{name: "no rules"},
		{name: "nft, a chain without rules", load: restore(ruleset.NFT, text(forwarding(nil)))},
		{name: "nft, as written", load: restore(ruleset.NFT, text(nft)), counters: list},
		{name: "nft, optimised", load: restore(ruleset.NFT, shorter(nft)), counters: list},
		{name: "nft -o", load: piped(text(nft), "nft", "-o", "-f", "-"), counters: list}}
	for _, h := range handmade() {
		all = append(all, &router{name: h.name, load: piped(h.text, "nft", "-f", "-"), counters: list, partial: h.partial})
	}
	for _, p := range []ruleset.Program{ruleset.IPTablesNFT, ruleset.IPTablesLegacy} {
		save := counted(string(p)+"-save", "-c")
		all = append(all,
			&router{name: string(p) + ", as written", load: restore(p, text(xt)), counters: save},
			&router{name: string(p) + ", optimised", load: restore(p, shorter(xt)), counters: save})
	}
	if _, err := exec.LookPath("ipset"); err != nil {
		b.Log("ipset is not installed: not measured")
		return all
	}
	var sets strings.Builder
	rules := "*filter\n:FORWARD ACCEPT [0:0]\n"
	for _, s := range []string{"src", "dst", "src_tcp", "dst_tcp"} {
		fmt.Fprintf(&sets, "create %s hash:net counters\n", s)
		for i := range 40 {
			fmt.Fprintf(&sets, "add %s 10.9.%d.0/24\n", s, i)
		}
		end, tcp, _ := strings.Cut(s, "_")
		rules += "-A FORWARD" + strings.Repeat(" -p tcp", min(len(tcp), 1)) + " -m set --match-set " + s + " " + end + "\n"
	}
	make, load := piped(sets.String(), "ipset", "restore"), restore(ruleset.IPTablesLegacy, rules+"COMMIT\n")
	return append(all, &router{name: "ipset by hand, iptables-legacy", counters: counted("ipset", "save"),
		load: func(ctx context.Context) error { return errors.Join(make(ctx), load(ctx)) }})
}

// handwritten is a way to count the packets of houses that the rewriter does not make.
type handwritten struct {
	name, text string
	partial    bool
}

// handmade are ways to get closer to the rate without rules, and what the parts of the work take.
func handmade() []handwritten {
	chain := func(first, rules string) string {
		return "table ip filter {\n" + first + " chain forward {\n" +
			"  type filter hook forward priority filter; policy accept;\n" + rules + " }\n}\n"
	}
	// mapped makes a map from houses to chains of one body.
	mapped := func(name, field, key, body string) (sets, rule string) {
		elements := ""
		for i := range 40 {
			sets += fmt.Sprintf(" chain %s%d {\n%s }\n", name, i, body)
			elements += fmt.Sprintf(key, i, name, i)
		}
		return sets, "  " + field + " vmap { " + strings.TrimSuffix(elements, ", ") + " }\n"
	}
	const prefix, plain = "10.9.%d.0 : jump %s%d, ", "ip %s & 255.255.255.0"
	both := func(body string) string {
		from, a := mapped("s", fmt.Sprintf(plain, "saddr"), prefix, body)
		to, b := mapped("d", fmt.Sprintf(plain, "daddr"), prefix, body)
		return chain(from+to, a+b)
	}
	one, alone := mapped("s", fmt.Sprintf(plain, "saddr"), prefix, "  counter\n  meta l4proto tcp counter\n")
	joined := func(end string) (string, string) {
		sets, elements := "", ""
		for i := range 40 {
			sets += fmt.Sprintf(" chain %st%d {\n  counter\n  counter\n }\n chain %su%d {\n  counter\n }\n", end, i, end, i)
			elements += fmt.Sprintf("10.9.%d.0 . tcp : jump %st%d, 10.9.%d.0 . udp : jump %su%d, ", i, end, i, i, end, i)
		}
		return sets, "  ip " + end + " & 255.255.255.0 . meta l4proto vmap { " + strings.TrimSuffix(elements, ", ") + " }\n"
	}
	from, a := joined("saddr")
	to, b := joined("daddr")
	return []handwritten{
		{"nft, a chain with one counter", chain("", "  counter\n"), true},
		{"nft, one lookup for one end alone", chain(one, alone), true},
		{"nft, both counters in one rule", both("  counter meta l4proto tcp counter\n"), false},
		{"nft, one key of address, protocol", chain(from+to, a+b), true},
	}
}

// BenchmarkForward sends the packets of forty houses through routers with 160 counting rules in all
// forms, alternately, and reports the CPU time of a packet from one veth to the other. The counters
// of all forms must be the same.
func BenchmarkForward(b *testing.B) {
	testenv.Need(b, testenv.NetNS, testenv.Peers)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread and its last namespace end with this function
		forward(b, routers(b))
	}()
	<-done
}

func forward(b *testing.B, all []*router) {
	for _, r := range all {
		if err := r.open(b.Context()); err != nil {
			b.Errorf("%s: %v", r.name, err)
			return
		}
		defer r.space.Close()
		defer unix.Close(r.socket)
	}
	thread := sys.ThreadID()
	sent := 0
	for range rounds * b.N {
		sent += 2 * batch
		for _, r := range all {
			// The first packets find the caches full of other routers.
			if err := r.send(); err != nil {
				b.Error(err)
				return
			}
			before, _ := sys.ThreadTime(thread)
			if err := r.send(); err != nil {
				b.Error(err)
				return
			}
			after, _ := sys.ThreadTime(thread)
			r.nanoseconds = append(r.nanoseconds, float64(after-before)/batch)
		}
	}
	low := func(r *router) float64 {
		slices.Sort(r.nanoseconds)
		return r.nanoseconds[len(r.nanoseconds)/4]
	}
	var want []uint64
	base := low(all[0])
	for _, r := range all {
		ns := low(r)
		line := fmt.Sprintf("%-32s %6.0f ns a packet, %4.0f thousand a second, %.2f of no rules", r.name, ns, 1e6/ns, base/ns)
		if r.counters != nil {
			if err := unix.Setns(int(r.space.Fd()), unix.CLONE_NEWNET); err != nil {
				b.Error(err)
				return
			}
			got, err := r.counters(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			slices.Sort(got)
			if want == nil {
				want = got
			}
			kept := shared(want, got)
			if line += fmt.Sprintf(", %d of %d counters as written", kept, len(want)); kept != len(want) && !r.partial {
				b.Errorf("%s: only %d of %d counters are the same", r.name, kept, len(want))
			}
		}
		b.Log(line)
	}
	b.Logf("%d packets through each", sent)
}

// shared returns how many values two sorted lists share.
func shared(a, b []uint64) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n, a, b = n+1, a[1:], b[1:]
		}
	}
	return n
}

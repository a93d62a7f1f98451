package read_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// inNamespace runs f on a thread with a network namespace of its own, whose loopback is up. The
// thread ends with f.
func inNamespace(t *testing.T, f func() error) {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("unshare: %w", err)
			return
		}
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			done <- fmt.Errorf("ip: %w: %s", err, out)
			return
		}
		done <- f()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// randomRules are rules of every modelled kind on addresses of the loopback, with a counter
// wherever one can be.
func randomRules(r *rand.Rand) string {
	prefix := func() string { return fmt.Sprintf("127.%d.%d.0/%d", r.IntN(4), r.IntN(4), 16+r.IntN(17)) }
	condition := func() string {
		not := []string{"", "!= "}[r.IntN(4)/3]
		switch r.IntN(8) {
		case 0:
			return "ip daddr " + not + prefix()
		case 1:
			return fmt.Sprintf("udp dport %s{ %d, %d-%d }", not, 9000+r.IntN(4), 9004+r.IntN(2), 9006+r.IntN(3))
		case 2:
			return fmt.Sprintf("udp sport < %d", 9500+r.IntN(8))
		case 3:
			return "ip saddr " + not + "@nets"
		case 4:
			return "ip saddr . udp dport @pairs"
		case 5:
			return []string{`oifname "lo"`, `oifname "e*"`, `oifname != "l*"`}[r.IntN(3)]
		case 6:
			return []string{"meta nfproto ipv4", "meta mark 7"}[r.IntN(2)]
		}
		return "ip saddr " + not + prefix()
	}
	rules := func(n int, chains ...string) string {
		var b strings.Builder
		for range n {
			verdict := []string{"", "", "", "accept", "drop", "return"}[r.IntN(6)]
			if len(chains) > 0 && r.IntN(2) == 0 {
				verdict = []string{"jump ", "goto "}[r.IntN(4)/3] + chains[r.IntN(len(chains))]
			}
			fmt.Fprintf(&b, "counter %s counter %s counter %s\n", condition(), condition(), verdict)
		}
		return b.String()
	}
	element := func(i int) string { return fmt.Sprintf("127.%d.%d.0/24 counter", i%4, i/4) }
	return fmt.Sprintf(`table inet t {
		set nets { type ipv4_addr; flags interval; counter; elements = { %s, %s, %s } }
		set pairs { type ipv4_addr . inet_service; counter; elements = { 127.0.1.1 . 9001, 127.1.1.1 . 9002, `+
		`127.2.1.1 . 9003, 127.3.1.1 . 9004 } }
		chain low { %s }
		chain high { %s
			udp dport vmap { 9001 : jump low, 9002 : goto low, 9003 : drop, 9004 : accept, 9005 : return, 9006 : continue }
			counter
		}
		chain out { type filter hook output priority 0; policy accept;
			meta l4proto != udp accept
			%s
			ip saddr & 255.255.255.0 vmap { 127.0.1.0 : jump low, 127.1.1.0 : goto high, 127.2.1.0 : jump high }
			%s
		}
		chain later { type filter hook output priority 10; policy drop;
			meta l4proto != udp accept
			counter
			%s
		}
	}`, element(r.IntN(5)), element(5+r.IntN(5)), element(10+r.IntN(5)), rules(4), rules(4, "low"),
		rules(5, "low", "high"), rules(5, "low", "high"), rules(3, "high"))
}

// send sends a datagram; that it does not arrive, or is refused by a rule, is what is being
// measured.
func send(p ruleset.Packet) {
	c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Source, p.SourcePort)),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Destination, p.DestinationPort)))
	if err != nil {
		return
	}
	_, _ = c.Write([]byte("x"))
	_ = c.Close()
}

// TestTraceAgainstKernel: the counters that a trace says increase are those that the kernel
// increases, for rules and packets by chance.
func TestTraceAgainstKernel(t *testing.T) {
	rulesets, packets := 40, 60
	compared, moved := 0, 0
	for seed := range rulesets {
		inNamespace(t, func() error {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			text := randomRules(r)
			load := exec.Command("nft", "-f", "-")
			load.Stdin = strings.NewReader(text)
			if out, err := load.CombinedOutput(); err != nil {
				return fmt.Errorf("nft: %w: %s\n%s", err, out, text)
			}
			list := func() (*ruleset.Ruleset, error) {
				out, err := exec.Command("nft", "-j", "list", "ruleset").Output()
				if err != nil {
					return nil, fmt.Errorf("nft: %w", err)
				}
				return parse(t, out), nil
			}
			rules, err := list()
			if err != nil {
				return err
			}
			want := make(map[*ruleset.Counter]uint64)
			address := func() netip.Addr { return netip.AddrFrom4([4]byte{127, byte(r.IntN(4)), byte(r.IntN(3)), 1}) }
			for range packets {
				p := ruleset.Packet{Out: "lo", Source: address(), Destination: address(), Protocol: 17,
					SourcePort: uint16(9500 + r.IntN(8)), DestinationPort: uint16(9000 + r.IntN(9)), State: ruleset.StateUntracked}
				send(p)
				for _, c := range rules.Trace("output", p, nil).Counters {
					want[c]++
				}
			}
			after, err := list()
			if err != nil {
				return err
			}
			before, now := allOf(rules), allOf(after)
			if len(before) != len(now) {
				return fmt.Errorf("%d counters before, %d after", len(before), len(now))
			}
			for i, c := range before {
				compared++
				if want[c] > 0 {
					moved++
				}
				if got := now[i].Packets - c.Packets; got != want[c] {
					t.Errorf("seed %d, counter %d: the kernel counted %d, the trace %d\n%s", seed, i, got, want[c], text)
					return nil
				}
			}
			return nil
		})
	}
	if moved < compared/10 {
		t.Errorf("of %d counters only %d moved", compared, moved)
	}
	t.Logf("%d counters of %d rulesets agree, %d of them moved", compared, rulesets, moved)
}

// allOf returns every counter in the order of the text.
func allOf(r *ruleset.Ruleset) []*ruleset.Counter {
	var all []*ruleset.Counter
	for _, t := range r.Tables {
		for _, s := range t.Sets {
			for _, e := range s.Elements {
				if e.Counter != nil {
					all = append(all, e.Counter)
				}
			}
		}
		for _, c := range t.Chains {
			for _, rule := range c.Rules {
				all = append(all, rule.Counters()...)
			}
		}
	}
	return all
}

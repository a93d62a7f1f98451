package read_test

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestFlagsAgainstKernel: of conditions on TCP's flags the trace of a new connection's first packet
// meets those that the kernel lets its SYN meet. The port is closed, and the answer comes in.
func TestFlagsAgainstKernel(t *testing.T) {
	nft := []string{"fin", "syn", "== syn", "!= syn", "! syn,ack", "syn,ack", "& (fin|syn|rst|ack) == syn",
		"& (fin|syn) == (fin|syn)", "& (fin|syn) != 0", "& (syn|ack) == 0", "& syn == syn", "!= syn / fin,syn,rst,ack"}
	tables := []string{"--syn", "! --syn", "--tcp-flags SYN,ACK SYN", "! --tcp-flags ALL SYN", "--tcp-flags ALL NONE",
		"--tcp-flags FIN,SYN FIN,SYN"}
	inNamespace(t, func() error {
		run := func(in, name string, args ...string) ([]byte, error) {
			c := exec.Command(name, args...)
			c.Stdin = strings.NewReader(in)
			out, err := c.Output()
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %s", name, err, in)
			}
			return out, nil
		}
		text := "table ip t { chain c { type filter hook output priority 0; ip protocol != tcp accept; \n"
		for _, s := range nft {
			text += "tcp sport 900 tcp flags " + s + " counter\n"
		}
		if _, err := run(text+"}\n}\n", "nft", "-f", "-"); err != nil {
			return err
		}
		text = "*filter\n:OUTPUT ACCEPT [0:0]\n"
		for _, s := range tables {
			text += "-A OUTPUT -p tcp --sport 900 -m tcp " + s + "\n"
		}
		if _, err := run(text+"COMMIT\n", "iptables-legacy-restore"); err != nil {
			return err
		}
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 900}}
		if c, err := d.Dial("tcp4", "127.0.0.1:901"); err == nil {
			_ = c.Close()
			return fmt.Errorf("port 901 is open")
		}
		p := ruleset.Packet{Out: "lo", Source: netip.MustParseAddr("127.0.0.1"), SourcePort: 900,
			Destination: netip.MustParseAddr("127.0.0.1"), DestinationPort: 901, Protocol: 6, State: ruleset.StateNew}
		for _, list := range [][]string{{"nft", "list", "ruleset"}, {"nft", "-j", "list", "ruleset"},
			{"iptables-legacy-save", "-c"}} {
			out, err := run("", list[0], list[1:]...)
			if err != nil {
				return err
			}
			rules, err := read.Any(out)
			if err != nil {
				return err
			}
			met := make(map[*ruleset.Rule]bool)
			for _, s := range rules.Trace("output", p, func(_ *ruleset.Rule, o ruleset.Opaque) (bool, bool) {
				return p.Answers(o)
			}).Steps {
				met[s.Rule] = s.Matched
				if s.Assumed {
					t.Errorf("%s: rule %d is not known", list, s.Index+1)
				}
			}
			if len(met) < len(tables) {
				return fmt.Errorf("%s: %d rules", list, len(met))
			}
			for r, matched := range met {
				if n := r.Counters(); len(n) > 0 && (n[0].Packets > 0) != matched {
					t.Errorf("%s: %s %v: the trace says %v, the kernel counted %d", list, r.Text, r.Statements, matched, n[0].Packets)
				}
			}
		}
		return nil
	})
}

package cost_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/read"
)

// extended has rules of a Kubernetes node with Cilium (nft before 1.0.3, published with its
// counters) and of RHCOS 4.2 (jds2001/coreos-sosreport-master1). kube-proxy wrote them through
// iptables-nft, and nft shows what it cannot express in a comment.
const extended = `table ip nat {
	chain OUTPUT {
		type nat hook output priority -100; policy accept;
		 counter packets 50610 bytes 3135432 jump KUBE-SERVICES
	}

	chain KUBE-SERVICES {
		ip saddr 127.0.0.0/8 counter packets 996 bytes 59760 return
		ip saddr != 10.0.0.0/8  # match-set KUBE-CLUSTER-IP dst,dst counter packets 3 bytes 180 jump KUBE-MARK-MASQ
		fib daddr type local counter packets 3051 bytes 182638 return
		# match-set KUBE-CLUSTER-IP dst,dst counter packets 3 bytes 180 accept
	}

	chain KUBE-MARK-MASQ {
		counter packets 3 bytes 180 meta mark set mark or 0x4000 
	}

	chain KUBE-FIREWALL {
		 mark and 0x8000 == 0x8000 counter packets 7 bytes 0 drop
	}

	chain CILIUM {
		iifname "eth0"  fib daddr . iif type local counter packets 4681 bytes 2064926 ct mark set ct mark or 0x80
		oifname != "lo" # socket --transparent meta mark & 0xf00 != 0xe00 counter packets 5 bytes 0 meta mark set 0x200
		meta l4proto tcp meta mark 0x95a40200  counter packets 6 bytes 0 # TPROXY redirect 127.0.0.1:42133 mark 0x200
		xt match "statistic" counter packets 9 bytes 540 xt target "REJECT"
	}

	chain INPUT {
		type nat hook input priority 100; policy accept;
		counter packets 40000 bytes 1 jump CILIUM # after "bytes 1 jump" this is a person's
		counter packets 30000 bytes 1 jump KUBE-FIREWALL
	}
}
`

func TestExtensionsInComments(t *testing.T) {
	r, err := read.NFTText(strings.NewReader(extended))
	if err != nil {
		t.Fatal(err)
	}
	rules := make(map[string]int)
	for _, c := range r.Tables[0].Chains {
		rules[c.Name] = len(c.Rules)
	}
	if rules["KUBE-SERVICES"] != 4 || rules["CILIUM"] != 4 || rules["INPUT"] != 2 {
		t.Errorf("rules %v", rules)
	}
	hits := make(map[string]uint64)
	report := cost.Of(r, cost.Measured())
	for _, h := range report.Hooks {
		for _, c := range h.Chains {
			if c.Uncounted != 0 {
				t.Errorf("%s: %d rules without a counter", c.Name, c.Uncounted)
			}
		}
	}
	for _, rule := range report.Costly {
		hits[rule.Text] = uint64(rule.Hits)
	}
	for text, want := range map[string]uint64{
		`xt match "match-set KUBE-CLUSTER-IP dst,dst" counter packets 3 bytes 180 accept`: 3,
		`meta l4proto tcp meta mark 0x95a40200 counter packets 6 bytes 0 ` +
			`xt target "TPROXY redirect 127.0.0.1:42133 mark 0x200"`: 6,
		`xt match "statistic" counter packets 9 bytes 540 xt target "REJECT"`: 9,
	} {
		if hits[text] != want {
			t.Errorf("%s: %d hits, want %d; of %v", text, hits[text], want, hits)
		}
	}
}

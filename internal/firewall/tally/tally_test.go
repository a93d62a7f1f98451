package tally_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/firewall/tally"
)

// TestOf: counters of rules, elements and names, with what distinguishes those of one comment.
func TestOf(t *testing.T) {
	r, err := read.Any([]byte(`table inet acct {
	counter spare { packets 7 bytes 70 }
	map houses { type ipv4_addr : verdict
		elements = { 10.0.0.1 counter packets 1 bytes 10 comment "house 1" : accept } }
	chain forward { type filter hook forward priority filter; policy accept;
		iifname "eth1.101" counter packets 5 bytes 50 comment "house 101"
		iifname "eth1.101" meta l4proto tcp counter packets 4 bytes 40 comment "house 101"
		counter packets 90 bytes 900
		counter name "spare" accept
		ip saddr vmap @houses
	}
}
`))
	if err != nil {
		t.Fatal(err)
	}
	got, left := tally.Of([]*ruleset.Ruleset{r}, tally.Most)
	want := []tally.Count{
		{"inet acct", "forward", "house 101", `iifname "eth1.101"`, 5, 50},
		{"inet acct", "forward", "house 101", `iifname "eth1.101" meta l4proto tcp`, 4, 40},
		{"inet acct", "", "spare", "", 7, 70},
		{"inet acct", "houses", "house 1", "ip saddr 10.0.0.1", 1, 10},
		{"inet acct", "forward", "", "", 90, 900},
	}
	if diff := cmp.Diff(want, got); diff != "" || left != 0 {
		t.Errorf("%d left out (-want +got):\n%s", left, diff)
	}
}

// TestOfMany: of many counters those with a name stay, then those that counted most.
func TestOfMany(t *testing.T) {
	var b strings.Builder
	b.WriteString("table ip t {\n chain c { type filter hook input priority 0;\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "ip saddr 10.0.%d.%d counter packets %d bytes 0", i/200, i%200, i)
		if i%10 == 0 {
			fmt.Fprintf(&b, " comment \"host %d\"", i)
		}
		b.WriteString("\n")
	}
	r, err := read.Any([]byte(b.String() + "}\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, left := tally.Of([]*ruleset.Ruleset{r}, tally.Most)
	if len(got) != tally.Most || left != 1000-tally.Most || got[99].Name != "host 990" || got[100].Packets != 999 {
		t.Errorf("%d counts, %d left out, %+v, %+v", len(got), left, got[99], got[100])
	}
}

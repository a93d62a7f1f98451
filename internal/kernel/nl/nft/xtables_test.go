package nft

import (
	"bufio"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// xtables reads tables as Linux 6.18 returned them on amd64 to iptables-legacy 1.8.9: family,
// table, the answer to IPT_SO_GET_INFO and the entries. The rules are in the comments of
// [TestXTables].
func xtables(t testing.TB, each func(family byte, table string, info xtInfo, entries []byte)) {
	t.Helper()
	f, err := os.Open("testdata/xtables.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		head, err := hex.DecodeString(words[2])
		if err != nil {
			t.Fatal(err)
		}
		entries, err := hex.DecodeString(words[3])
		if err != nil {
			t.Fatal(err)
		}
		info, err := parseXTInfo(head)
		if err != nil {
			t.Fatal(err)
		}
		each(map[string]byte{"ip": 2, "ip6": 10}[words[0]], words[1], info, entries)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestXTables(t *testing.T) {
	var got []Chain
	xtables(t, func(family byte, table string, info xtInfo, entries []byte) {
		chains, err := parseXTables(family, table, info, entries)
		if err != nil {
			t.Error(err)
		}
		for _, c := range chains {
			if c.Rules > 0 {
				got = append(got, c)
			}
		}
	})
	want := []Chain{
		// -i lo -j ACCEPT · -p tcp -j tcpin, 900 000 packets · -p udp -g udpin · -s … -j never
		// tcpin: -s … · -s … · --ctstate ESTABLISHED -j RETURN; udpin: -s … -j DROP · -j ACCEPT;
		// never: -j LOG
		{Family: "ip", Table: "filter", Name: "INPUT", Type: "filter", Hook: "input", Rules: 4, Compared: 7, AtMost: 9,
			Counting: 2, Legacy: true},
		// -j ACCEPT, as good as the policy
		{Family: "ip", Table: "filter", Name: "FORWARD", Type: "filter", Hook: "forward", Rules: 1, Legacy: true},
		// --ctstate ESTABLISHED -j ACCEPT · -s … -j DROP
		{Family: "ip", Table: "mangle", Name: "PREROUTING", Type: "filter", Hook: "prerouting", Rules: 2, Compared: 1,
			AtMost: 1, Legacy: true},
		// -p tcp -g six (-s …) · -s … -j DROP; policy DROP
		{Family: "ip6", Table: "filter", Name: "INPUT", Type: "filter", Hook: "input", Rules: 2, Compared: 2, AtMost: 3,
			Counting: 1, Legacy: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzXTables: a list cut anywhere, or of another shape, gives an error and never a panic.
func FuzzXTables(f *testing.F) {
	xtables(f, func(family byte, _ string, info xtInfo, entries []byte) {
		f.Add(family == 10, info.hooks[1], entries)
		f.Add(family == 10, info.hooks[1], entries[:len(entries)/2])
	})
	f.Fuzz(func(t *testing.T, six bool, hook uint32, entries []byte) {
		family := byte(2)
		if six {
			family = 10
		}
		info := xtInfo{valid: 1 << 1}
		info.hooks[1] = hook
		if _, err := parseXTables(family, "filter", info, entries); err == nil && len(entries) > 0 && len(entries) < 100 {
			t.Error("an entry shorter than its head")
		}
	})
}

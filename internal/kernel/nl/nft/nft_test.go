package nft

import (
	"bufio"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// messages reads the answers of Linux 6.18 for a rule set made for these tests: one line for each
// chain and rule, without the netlink header. The rules are in the comments of [TestRecorded].
func messages(t testing.TB) (chains, rules [][]byte) {
	t.Helper()
	f, err := os.Open("testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		kind, text, _ := strings.Cut(lines.Text(), " ")
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if kind == "chain" {
			chains = append(chains, b)
		} else {
			rules = append(rules, b)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return chains, rules
}

func TestRecorded(t *testing.T) {
	chains, rules := messages(t)
	steps := make(map[key][]step)
	for _, b := range rules {
		k, s, err := parseRule(b)
		if err != nil {
			t.Fatal(err)
		}
		steps[k] = append(steps[k], s)
	}
	w := walkOf(steps, false)
	var got []Chain
	jumpedTo := 0
	for _, b := range chains {
		c, k, base, err := parseChain(b)
		if err != nil {
			t.Fatal(err)
		}
		if !base {
			jumpedTo++
			continue
		}
		most := walkOf(steps, true)
		c.Compared, c.AtMost = w.walked(k), most.walked(k)
		c.Counting = most.counting(k.family, k.table)
		got = append(got, c)
	}
	want := []Chain{
		// ct state established,related accept · ip saddr … drop
		{Family: "inet", Table: "t", Name: "input", Type: "filter", Hook: "input", Rules: 2, Compared: 1,
			AtMost: 1},
		// counter jump big (ip saddr … drop, ip saddr … counter drop, meta mark set 5) · goto far
		// (counter log, accept) · ip saddr … drop
		{Family: "inet", Table: "t", Name: "out", Type: "filter", Hook: "output", Priority: 10, Rules: 3,
			Compared: 7, AtMost: 7, Counting: 1},
		// ct state vmap { established : accept, invalid : drop } · ip saddr … drop
		{Family: "inet", Table: "t", Name: "vm", Type: "filter", Hook: "forward", Rules: 2, Compared: 1,
			AtMost: 1},
		// tcp dport 22 jump big · ct state invalid drop · ct state new accept · limit rate 5/second
		// accept · ip saddr @s drop
		{Family: "inet", Table: "t", Name: "cond", Type: "filter", Hook: "prerouting", Rules: 5,
			Compared: 5, AtMost: 8},
		// oifname "eth9" masquerade
		{Family: "inet", Table: "t", Name: "n", Type: "nat", Hook: "postrouting", Priority: 100, Rules: 1,
			Compared: 1, AtMost: 1},
		// ip saddr … drop · drop · ip saddr … drop
		{Family: "netdev", Table: "d", Name: "i", Type: "filter", Hook: "ingress", Rules: 3, Compared: 2,
			AtMost: 2},
		{Family: "bridge", Table: "b", Name: "f", Type: "filter", Hook: "forward", Priority: -200},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if jumpedTo != 2 {
		t.Errorf("%d chains without a hook, want big and far", jumpedTo)
	}
}

// TestWalked checks that no set of rules makes the count slow or endless.
func TestWalked(t *testing.T) {
	chain := func(n int) key { return key{1, "t", string(rune('a' + n))} }
	circle := walkOf(map[key][]step{chain(0): {{into: "b"}}, chain(1): {{}, {into: "a"}}}, false)
	if n := circle.walked(chain(0)); n != 3 {
		t.Errorf("%d rules in a cycle", n)
	}
	if n := circle.walked(key{1, "t", "gone"}); n != 0 {
		t.Errorf("%d rules of a missing chain", n)
	}
	// Each of sixteen chains, the kernel's limit for nesting, jumps to the next a hundred times.
	deep := walkOf(map[key][]step{}, false)
	for i := range 16 {
		for range 100 {
			deep.rules[chain(i)] = append(deep.rules[chain(i)], step{into: chain(i + 1).name})
		}
	}
	if n := deep.walked(chain(0)); n != maxWalk {
		t.Errorf("%d rules in nested chains", n)
	}
}

// TestConditionalJumps: most packets take a jump whose counter says so, and the upper bound takes
// every one. Accounting rules are those that a packet may meet.
func TestConditionalJumps(t *testing.T) {
	in, tcp, udp := key{2, "filter", "INPUT"}, key{2, "filter", "tcp"}, key{2, "filter", "udp"}
	chain := func(n int, s step) []step { return slices.Repeat([]step{s}, n) }
	rules := map[key][]step{
		in: {{conditional: true, into: "tcp", packets: 900_000}, {conditional: true, into: "udp", packets: 40},
			{conditional: true, into: "udp", ends: true, packets: 3}, {ends: true, packets: 950_000}},
		tcp: chain(160, step{counts: true, packets: 5000}), udp: chain(70, step{}),
	}
	if n := walkOf(rules, false).walked(in); n != 164 {
		t.Errorf("by the counters a packet meets %d rules, want 4 and the 160 for TCP", n)
	}
	most := walkOf(rules, true)
	if n := most.walked(in); n != 4+160+2*70 {
		t.Errorf("a packet meets %d rules at most", n)
	}
	if n := most.counting(2, "filter"); n != 160 {
		t.Errorf("%d rules only count", n)
	}
	for k := range rules {
		for i := range rules[k] {
			rules[k][i].packets = 0
		}
	}
	if n := walkOf(rules, false).walked(in); n != 4 {
		t.Errorf("without counters %d rules are certain", n)
	}
}

// TestShort checks that a truncated message yields an error, or a chain without that part, and
// never a panic.
func TestShort(t *testing.T) {
	if _, _, _, err := parseChain([]byte{1, 0}); err == nil {
		t.Error("a chain without a header")
	}
	if _, err := parseGeneration([]byte{0, 0, 0, 0}); err == nil {
		t.Error("a generation without a number")
	}
	if id, err := parseGeneration([]byte{0, 0, 0, 7, 8, 0, 1, 0, 0, 0, 1, 2}); err != nil || id != 258 {
		t.Errorf("generation %d: %v", id, err)
	}
	if _, _, err := parseRule(nil); err == nil {
		t.Error("a rule without a header")
	}
}

func FuzzParse(f *testing.F) {
	chains, rules := messages(f)
	for _, b := range append(chains, rules...) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, _, base, err := parseChain(b); err == nil && base && (c.Family == "" || c.Compared != c.Rules) {
			t.Errorf("%+v", c)
		}
		if k, s, err := parseRule(b); err == nil {
			walkOf(map[key][]step{k: {s}}, true).walked(k)
		}
	})
}

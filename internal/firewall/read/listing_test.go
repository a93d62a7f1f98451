package read_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// both loads a text with the real nft in a namespace of its own, and returns what nft lists of it
// as JSON and as text.
func both(t *testing.T, file string) (asJSON, asText []byte) {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	nft, unshare := testenv.Program(t, "nft"), testenv.Program(t, "unshare")
	out := filepath.Join(t.TempDir(), "text")
	cmd := exec.Command(unshare, "--net", "sh", "-c", nft+" -f "+file+" && "+nft+" list ruleset >"+out+" && "+nft+
		" -j list ruleset")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	asJSON, err := cmd.Output()
	if err == nil {
		asText, err = os.ReadFile(out)
	}
	if err != nil {
		t.Fatalf("nft: %v\n%s", err, stderr.String())
	}
	return asJSON, asText
}

// TestListing: what nft prints as text means the same as its JSON, for rules that others wrote.
func TestListing(t *testing.T) {
	files, err := filepath.Glob("testdata/nft/*.nft")
	if more := os.Getenv("LINERATE_TEST_RULES"); more != "" { // a directory of more files
		also, _ := filepath.Glob(filepath.Join(more, "*.nft"))
		files = append(files, also...)
	}
	if err != nil || len(files) < 9 {
		t.Fatal(err, len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			asJSON, asText := both(t, f)
			got, err := read.Any(asText)
			if err != nil {
				t.Fatalf("%v\n%s", err, asText)
			}
			// What nft 1.0.6 writes in one form alone, or in another way: the comment of a table, the flag
			// of a set that packets change, the burst that a limit has anyway, how a rejection answers,
			// flags of TCP, the base of a mark.
			same := func(r *ruleset.Ruleset) string {
				s := described(r)
				for _, c := range []struct{ from, to string }{{`(table \S+ \S+ \S+) .*`, "$1"}, {`dynamic `, ""},
					{` burst 5 packets`, ""}, {`Detail:with icmpx? port-unreachable`, "Detail:"},
					{`tcp flags & \((.*)\) == (\w+)`, "tcp flags $2 / $1"}, {` \| `, ","}, {`0x0+`, ""}} {
					s = regexp.MustCompile(c.from).ReplaceAllString(s, c.to)
				}
				return s
			}
			want := parse(t, asJSON)
			if a, b := same(want), same(got); a != b {
				t.Errorf("of JSON:\n%s\nof the text:\n%s\n%s", a, b, asText)
			}
			// The file itself, as its author wrote it, has the same chains and as many rules.
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			written, err := read.Any(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range want.Tables {
				for _, c := range table.Chains {
					u := written.Table(table.Family, table.Name)
					if u == nil || u.Chain(c.Name) == nil || len(u.Chain(c.Name).Rules) != len(c.Rules) {
						t.Errorf("as its author wrote it, chain %s of table %s is another one", c.Name, table.Name)
					}
				}
			}
		})
	}
}

// described writes everything of rules but handles, also what nft could not load again.
func described(r *ruleset.Ruleset) string {
	var b strings.Builder
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "table %s %s %v %q\n", t.Family, t.Name, t.Flags, t.Comment)
		for _, s := range t.Sets {
			fmt.Fprintf(&b, " set %s %v %q %v %v %d %q %v\n", s.Name, s.Types, s.Data, s.Flags, s.Timeout, s.Size, s.Comment,
				s.Merging)
			describeElements(&b, s)
		}
		for _, o := range t.Objects {
			fmt.Fprintf(&b, " %s %s %v\n", o.Kind, o.Name, o.Counter)
		}
		for _, c := range t.Chains {
			fmt.Fprintf(&b, " chain %s %s %s %d %v %s\n", c.Name, c.Type, c.Hook, c.Priority, c.Devices, c.Policy)
			for _, rule := range c.Rules {
				fmt.Fprintf(&b, "  rule %q\n", rule.Comment)
				for _, s := range rule.Statements {
					switch s := s.(type) {
					case ruleset.Match:
						fmt.Fprintf(&b, "   match %v %v %v\n", s.Key, s.Negated, s.Plain)
						describeElements(&b, s.Set)
					case ruleset.VerdictMap:
						fmt.Fprintf(&b, "   vmap %v\n", s.Key)
						describeElements(&b, s.Set)
					case ruleset.Opaque:
						text := s.Text
						if s.Unprintable {
							text, _, _ = strings.Cut(text, " ")
						}
						fmt.Fprintf(&b, "   opaque %q %s %v %v\n", text, s.Effect, s.Conditional, s.Ends)
					case *ruleset.Counter:
						fmt.Fprintf(&b, "   counter %+v\n", *s)
					default:
						fmt.Fprintf(&b, "   %+v\n", s)
					}
				}
			}
		}
	}
	return b.String()
}

func describeElements(b *strings.Builder, s *ruleset.Set) {
	if s == nil {
		return
	}
	for _, e := range s.Elements {
		fmt.Fprintf(b, "    %v %v %q %v %q\n", e.Key, e.Verdict, e.Data, e.Counter, e.Comment)
	}
}

// TestListingBad: half a text, a text that is not whole, and another program's end with a sentence
// that names the line.
func TestListingBad(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"half", "table ip t {\n chain c {\n  tcp dport 22 acc", "line 3: the text ends in the middle"},
		{"half a set", "table ip t {\n set s {\n  type ipv4_addr\n  elements = { 10.0.0.1", "ends in the middle"},
		{"a string without end", "table ip t {\n comment \"x\n}", "line 2: a string has no end"},
		{"another file", "flush ruleset\ninclude \"/etc/nftables.d/*.nft\"\n", "line 2: the text includes another file"},
		{"another file in a set", "table ip t {\n set s {\n  type ipv4_addr\n  include \"x\"\n }\n}\n",
			"line 4: set s: the text includes another file"},
		{"commands", "add table ip t\nadd chain ip t c\n", `line 2: "add" is not the beginning of a table`},
		{"unknown member", "table ip t {\n warp w { }\n}", `line 2: "warp" is unknown`},
		{"no hook", "table ip t {\n chain c {\n  type filter priority 0; policy drop;\n }\n}", "the hook is missing"},
		{"no target", "table ip t {\n chain c {\n  jump\n }\n}", "line 3: chain c: no target"},
	} {
		_, err := read.Any([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestListingUnknown: a statement that the reader does not know stays as it is, and nothing moves
// across it.
func TestListingUnknown(t *testing.T) {
	r, err := read.Any([]byte("table ip t {\n chain c {\n  tcp dport 22 teleport to mars counter accept\n }\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	rule := r.Tables[0].Chains[0].Rules[0]
	s, ok := rule.Statements[1].(ruleset.Opaque)
	if !rule.Barrier() || !ok || s.Text != "teleport to mars counter accept" {
		t.Errorf("%+v", rule.Statements)
	}
}

func FuzzNFTText(f *testing.F) {
	files, _ := filepath.Glob("testdata/nft/*.nft")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte("define a = { 1, 2 }\ntable inet t { counter n { packets 1 bytes 2 }\n" +
		"set s { typeof ip saddr . tcp dport\n" +
		"flags interval\n elements = { 10.0.0.0/8 . 1-9 counter packets 1 bytes 2 comment \"x\" } }\n" +
		"map m { type ifname : verdict\n elements = { \"eth0\" : jump c } }\n" +
		"chain c { type filter hook input priority filter + 5\n ip saddr . tcp dport @s counter name n\n" +
		"tcp dport $a limit rate over 5/second log prefix \"y\" reject with tcp reset\n" +
		"iifname vmap @m; fib daddr type local meta mark set mark | 0x1 dnat ip to 10.0.0.1:80 comment \"z\" } }\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := read.NFTText(bytes.NewReader(b))
		if err != nil {
			return
		}
		_ = ruleset.WriteNFT(&strings.Builder{}, r) // an error is an answer
		r.Trace("input", ruleset.Packet{State: ruleset.StateNew}, nil)
	})
}

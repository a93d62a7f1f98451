package read_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// reload loads a text with the real nft in a namespace of its own, and returns what nft then lists.
func reload(t *testing.T, text string) []byte {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	nft, unshare := testenv.Program(t, "nft"), testenv.Program(t, "unshare")
	file := filepath.Join(t.TempDir(), "rules.nft")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(unshare, "--net", "sh", "-c", nft+" -f "+file+" && "+nft+" -j list ruleset")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("nft: %v\n%s\n%s", err, stderr.String(), text)
	}
	return out
}

func parse(t *testing.T, b []byte) *ruleset.Ruleset {
	t.Helper()
	r, err := read.NFT(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t *testing.T, r *ruleset.Ruleset) string {
	t.Helper()
	var b strings.Builder
	if err := ruleset.WriteNFT(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNFTRoundTrip: what is written loads in the real nft and means the same, for rules that others
// wrote. testdata/nft/README.md names them.
func TestNFTRoundTrip(t *testing.T) {
	files, err := filepath.Glob("testdata/nft/*.nft")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			// Loading makes a set of one element a plain comparison, so what is compared was loaded twice.
			first := reload(t, written(t, parse(t, reload(t, string(b)))))
			text := written(t, parse(t, first))
			second := reload(t, text)
			if again := written(t, parse(t, second)); again != text {
				t.Errorf("written:\n%s\nread again:\n%s", text, again)
			}
			// Everything but the handles is the same for nft itself.
			if a, b := withoutHandles(string(first)), withoutHandles(string(second)); a != b {
				t.Errorf("nft listed\n%s\nand of what was written\n%s", a, b)
			}
		})
	}
}

func withoutHandles(s string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(s, `"handle": `) {
		if out.Len() > 0 {
			part = strings.TrimLeft(part, "0123456789")
		}
		out.WriteString(part)
	}
	return out.String()
}

func TestNFTBad(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"half", `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"fam`, "ends in the middle"},
		{"other program", "*filter\n:INPUT ACCEPT", "invalid character"},
		{"newer", `{"nftables": [{"metainfo": {"version": "9.0", "json_schema_version": 2}}]}`, "JSON of version 2"},
		{"no list", `{"a": 1}`, `no list "nftables"`},
		{"no table", `{"nftables": [{"chain": {"family": "ip", "table": "t", "name": "c"}}]}`,
			"table ip t is not in the text"},
		{"no chain", `{"nftables": [{"table": {"family": "ip", "name": "t"}},
			{"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 7, "expr": []}}]}`, "handle 7: chain c"},
		{"no target",
			`{"nftables": [{"table": {"family": "ip", "name": "t"}}, {"chain": {"family": "ip", "table": "t", "name": "c"}},
			{"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 7, "expr": [{"jump": {}}]}}]}`, "no target"},
	} {
		_, err := read.NFT(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestUnknownStatement: a statement of a newer nft stays, is a barrier, and cannot be written.
func TestUnknownStatement(t *testing.T) {
	r := parse(t, []byte(`{"nftables": [{"table": {"family": "ip", "name": "t"}}, `+
		`{"chain": {"family": "ip", "table": "t", "name": "c"}},
		{"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 7, "expr": [{"teleport": {"to": "mars"}}, `+
		`{"accept": null}]}}]}`))
	if !r.Tables[0].Chains[0].Rules[0].Barrier() {
		t.Error("no barrier")
	}
	if err := ruleset.WriteNFT(&strings.Builder{}, r); err == nil || !strings.Contains(err.Error(), "teleport") {
		t.Errorf("written: %v", err)
	}
}

// TestExactFlags: nft takes flags behind == as exactly these, and without an operator as any.
func TestExactFlags(t *testing.T) {
	for op, want := range map[string]string{"==": "tcp flags == syn", "in": "tcp flags syn"} {
		r := parse(t, []byte(`{"nftables": [{"table": {"family": "ip", "name": "t"}}, `+
			`{"chain": {"family": "ip", "table": "t", "name": "c"}}, {"rule": {"family": "ip", "table": "t", "chain": "c", `+
			`"expr": [{"match": {"op": "`+op+`", "left": {"payload": {"protocol": "tcp", "field": "flags"}}, `+
			`"right": "syn"}}]}}]}`))
		var b strings.Builder
		if err := ruleset.WriteNFT(&b, r); err != nil || !strings.Contains(b.String(), want+"\n") {
			t.Errorf("%s: %v, want %q\n%s", op, err, want, b.String())
		}
	}
}

func FuzzNFT(f *testing.F) {
	f.Add([]byte(`{"nftables": [{"table": {"family": "ip", "name": "t"}}, ` +
		`{"set": {"family": "ip", "table": "t", "name": "s",
		"type": ["ipv4_addr", "inet_service"], "flags": ["interval"], "elem": [{"concat": [` +
		`{"prefix": {"addr": "10.0.0.0", "len": 8}},
		{"range": [1, 9]}]}]}}, {"chain": {"family": "ip", "table": "t", "name": "c", ` +
		`"type": "filter", "hook": "input", "prio": 0}},
		{"rule": {"family": "ip", "table": "t", "chain": "c", "expr": [{"match": {"op": "==", "left": {"concat": [{"payload":
		{"protocol": "ip", "field": "saddr"}}, {"payload": {"protocol": "tcp", "field": "dport"}}]}, "right": "@s"}},
		{"vmap": {"key": {"ct": {"key": "state"}}, "data": {"set": [["new", {"jump": {"target": "c"}}]]}}}]}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := read.NFT(bytes.NewReader(b))
		if err != nil {
			return
		}
		_ = ruleset.WriteNFT(&strings.Builder{}, r) // an error is an answer
		r.Trace("input", ruleset.Packet{State: ruleset.StateNew}, nil)
	})
}

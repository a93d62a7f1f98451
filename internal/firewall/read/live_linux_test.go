package read_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestLive reads a namespace without rules, then with some, and what they counted in between.
func TestLive(t *testing.T) {
	inNamespace(t, func() error {
		ctx := context.Background()
		if _, err := read.Live(ctx); !errors.Is(err, read.ErrNone) {
			return fmt.Errorf("without rules: %w", err)
		}
		load := func(text string) error {
			c := exec.Command("nft", "-f", "-")
			c.Stdin = strings.NewReader(text)
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("nft: %w: %s", err, out)
			}
			return nil
		}
		if err := load("table ip t {\n chain c {\n type filter hook output priority 0\n" +
			" udp dport 9 counter packets 5 bytes 50 drop\n }\n}\n"); err != nil {
			return err
		}
		before, err := read.Live(ctx)
		if err != nil {
			return err
		}
		for range 3 {
			send(ruleset.Packet{Source: netip.MustParseAddr("127.0.0.1"), Destination: netip.MustParseAddr("127.0.0.1"),
				DestinationPort: 9})
		}
		after, err := read.Live(ctx)
		if err != nil {
			return err
		}
		if len(after) != 1 || after[0].Generation == 0 || after[0].Program != ruleset.NFT {
			return fmt.Errorf("%d rulesets, %+v", len(after), after)
		}
		if err := after[0].Subtract(before[0]); err != nil {
			return err
		}
		if n := after[0].Tables[0].Chains[0].Rules[0].Counters()[0].Packets; n != 3 {
			t.Errorf("%d packets in between, want 3", n)
		}
		// A change between two readings is seen even if the rules look alike.
		if err := load("add table ip other\ndelete table ip other\n"); err != nil {
			return err
		}
		changed, err := read.Live(ctx)
		if err != nil {
			return err
		}
		if err := changed[0].Subtract(before[0]); err == nil {
			t.Error("rules of another generation were subtracted")
		}
		return nil
	})
}

// TestLiveChanging: rules that change while nft lists them are read again, and if they never stay
// the same the answer says so.
func TestLiveChanging(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	dir, real := t.TempDir(), testenv.Program(t, "nft")
	// The first run of the real program is followed by a change, before its output arrives; often
	// is how many runs are.
	script := "#!/bin/sh\n" + real + ` "$@" || exit
n=$(cat "$0.runs" 2>/dev/null || echo 0)
echo $((n + 1)) > "$0.runs"
[ "$n" -ge "$(cat "$0.often")" ] || ` + real + ` add table ip changed$n
`
	path := filepath.Join(dir, "nft")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		often, tables string
		want          error
	}{{"1", "2", nil}, {"3", "", read.ErrChanging}} {
		inNamespace(t, func() error {
			if out, err := exec.Command(real, "add", "table", "ip", "first").CombinedOutput(); err != nil {
				return fmt.Errorf("nft: %w: %s", err, out)
			}
			_ = os.Remove(path + ".runs") // the first round has none
			if err := os.WriteFile(path+".often", []byte(c.often), 0o644); err != nil {
				return err
			}
			got, err := read.Live(context.Background())
			if !errors.Is(err, c.want) {
				return fmt.Errorf("changed %s times: %w", c.often, err)
			}
			if c.want == nil && fmt.Sprint(len(got[0].Tables)) != c.tables {
				return fmt.Errorf("changed %s times: %d tables", c.often, len(got[0].Tables))
			}
			return nil
		})
	}
}

func TestAny(t *testing.T) {
	for _, c := range []struct {
		text string
		want ruleset.Program
	}{
		{`{"nftables": []}`, ruleset.NFT}, {"# of a router\ntable inet t {\n}\n", ruleset.NFT},
		{saved, ruleset.IPTablesLegacy}, {savedSets + saved, ruleset.IPTablesLegacy},
		{ipfwList, ruleset.IPFW}, {pfList, ruleset.PF},
		{strings.Replace(saved, "v1.8.9", "v1.8.9 (nf_tables)", 1), ruleset.IPTablesNFT},
	} {
		r, err := read.Any([]byte(c.text))
		if err != nil || r.Program != c.want {
			t.Errorf("%.30q: %v, want %s", c.text, err, c.want)
		}
	}
	for _, bad := range []string{"", "table inet t {\n", savedSets, "hello", "\x1f\x8b\x08"} {
		if r, err := read.Any([]byte(bad)); err == nil {
			t.Errorf("%.30q is of %s", bad, r.Program)
		}
	}
}

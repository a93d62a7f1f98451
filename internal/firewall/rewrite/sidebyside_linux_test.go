package rewrite_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestSideBySide gives the same rules to nft -o. It prints the table of docs/evidence/firewall.md,
// and judges only what the rewriter must do better: every counter stays, and nothing fails.
func TestSideBySide(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	sets := map[string]*ruleset.Ruleset{"houses": houses(ruleset.NFT)}
	for _, s := range seeds {
		sets[s.name+", 50 rules"] = generated(s, 1, 50)
		sets[s.name+", 200 rules"] = generated(s, 1, 200)
	}
	limits := equal.Usual()
	limits.Steps = 100_000
	for name, before := range sets {
		all := len(equal.Counters(before))
		got := rewrite.Optimise(before, limits)
		old, now, _ := rewrite.PerPacket(before, got.Rules)
		if kept := len(equal.Counters(got.Rules)); got.Proof.Answer != equal.Equal || kept < all {
			t.Errorf("%s: %s %s, %d of %d counters", name, got.Proof.Answer, got.Proof.What, kept, all)
		}
		other, err := byNFT(t.Context(), before)
		if err != nil {
			t.Logf("%s: %.1f rules per packet before, %.1f after; nft -o: %v", name, old, now, err)
			continue
		}
		_, theirs, _ := rewrite.PerPacket(before, other)
		t.Logf("%s: %.1f rules per packet before, %.1f after; nft -o: %.1f, %d of %d counters", name, old, now, theirs,
			len(equal.Counters(other)), all)
	}
}

// byNFT returns what nft -o makes of rules.
func byNFT(ctx context.Context, r *ruleset.Ruleset) (*ruleset.Ruleset, error) {
	var text strings.Builder
	if err := ruleset.WriteNFT(&text, r); err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, "unshare", "-n", "sh", "-c", "nft -o -f - >/dev/null && nft -j list ruleset")
	c.Stdin = strings.NewReader(text.String())
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, failure(said.String())
	}
	return read.Any(out)
}

// failure is what nft said first.
type failure string

func (f failure) Error() string {
	line, _, _ := strings.Cut(string(f), "\n")
	_, what, ok := strings.Cut(line, "Error: ")
	if !ok {
		return line
	}
	return what
}

package rewrite_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// forwarded are packets that the kernel forwards, from one interface to the other: those at the
// ends of the rules' ranges, with ordinary values for fields that have others.
func forwarded(r *ruleset.Ruleset, most int) []ruleset.Packet {
	var all []ruleset.Packet
	for _, p := range equal.Directed(r, "forward", most) {
		ordinary := func(a netip.Addr) bool { return a.Is4() && a.As4()[0] == 10 }
		if !ordinary(p.Source) {
			p.Source = netip.AddrFrom4([4]byte{10, 77, 7, 7})
		}
		if !ordinary(p.Destination) {
			p.Destination = netip.AddrFrom4([4]byte{10, 77, 7, 8})
		}
		if p.Protocol != 1 && p.Protocol != 6 {
			p.Protocol = 17
		}
		p.In, p.Out = "lr0", "lr1"
		all = append(all, p)
	}
	return all
}

// TestKernel: the kernel counts and forwards the same with the old rules and with the new ones.
func TestKernel(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	packets, counters, moved, checks, shorter := 0, 0, 0, 0, 0
	check := func(name string, before *ruleset.Ruleset, repeat int) {
		t.Helper()
		limits := equal.Usual()
		limits.Steps = 100_000
		got := rewrite.Optimise(before, limits)
		checks++
		if len(got.Kept) > 0 {
			t.Errorf("%s: kept %v", name, got.Kept)
		}
		if len(got.Changed) == 0 {
			return
		}
		shorter++
		r, err := equal.Kernel(t.Context(), before, got.Rules, forwarded(before, 2000), repeat)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if r.Different != "" {
			t.Errorf("%s: %d packets, %d counters: %s", name, r.Packets, r.Counters, r.Different)
		}
		packets, counters, moved = packets+r.Packets, counters+r.Counters, moved+r.Moved
	}
	check("houses", houses(ruleset.NFT), 1)
	check("planted", planted(), 1)
	for _, p := range []ruleset.Program{ruleset.IPTablesLegacy, ruleset.IPTablesNFT} {
		before := houses(ruleset.IPTablesLegacy)
		before.Program = p
		check("houses of "+string(p), before, 1)
		check("acl of "+string(p), generatedXtables(seeds[0], 3, 100, p), 1)
	}
	number := 1
	if testenv.Provided(testenv.Soak) {
		number = 10
		million := 1_000_000/max(1, len(forwarded(houses(ruleset.NFT), 2000))) + 1
		check("houses, a million packets", houses(ruleset.NFT), million)
		check("houses of iptables, a million packets", houses(ruleset.IPTablesLegacy), million)
	}
	for _, s := range seeds {
		for n := range number {
			check(fmt.Sprintf("%s %d", s.name, n), generated(s, uint64(n), 40+20*n), 1)
		}
	}
	if shorter < checks*3/4 {
		t.Errorf("of %d rulesets only %d changed", checks, shorter)
	}
	if moved < counters/4 {
		t.Errorf("of %d counters only %d moved", counters, moved)
	}
	t.Logf("%d packets, %d counters, %d of them moved", packets, counters, moved)
}

// TestRealNFT: nft reads the rules that others wrote, they are equal after the rewrite, and nft
// loads what was written.
func TestRealNFT(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	files, err := filepath.Glob("../read/testdata/nft/*.nft")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	limits := equal.Usual()
	limits.Steps = 100_000
	for _, file := range files {
		listed, err := exec.Command("unshare", "-n", "sh", "-c", `nft -f "$0" && nft -j list ruleset`, file).Output()
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		before, err := read.NFT(bytes.NewReader(listed))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got := proven(t, filepath.Base(file), before, limits)
		var text strings.Builder
		if err := rewrite.Write(&text, got.Rules); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		load := exec.Command("unshare", "-n", "nft", "-f", "-")
		load.Stdin = strings.NewReader(text.String())
		if out, err := load.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", file, err, out, text.String())
		}
	}
}

package cost

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/read"
)

// TestCandidates: of rules by chance, every pair of which one covers the other is a candidate.
func TestCandidates(t *testing.T) {
	for seed := range 30 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		var text strings.Builder
		text.WriteString("*filter\n:INPUT ACCEPT [0:0]\n")
		for range 100 + r.IntN(200) {
			text.WriteString("-A INPUT")
			if r.IntN(4) > 0 {
				fmt.Fprintf(&text, " -s 10.%d.%d.0/%d", r.IntN(4), r.IntN(4)*16, 8+r.IntN(17))
			}
			if r.IntN(3) == 0 {
				fmt.Fprintf(&text, " -i eth%d", r.IntN(3))
			}
			if r.IntN(2) == 0 {
				first := 1 + r.IntN(20)
				fmt.Fprintf(&text, " -p tcp -m tcp --dport %d:%d", first, first+r.IntN(20))
			}
			fmt.Fprintf(&text, " -j %s\n", []string{"ACCEPT", "DROP"}[r.IntN(2)])
		}
		text.WriteString("COMMIT\n")
		rules, err := read.IPTables(strings.NewReader(text.String()), nil)
		if err != nil {
			t.Fatal(err)
		}
		var boxes []box
		for i, rule := range rules.Tables[0].Chains[0].Rules {
			b, ok := boxOf(rule, i)
			if !ok {
				t.Fatalf("rule %d decides nothing", i)
			}
			boxes = append(boxes, b)
		}
		type pair struct{ i, j int }
		got := make(map[pair]bool)
		for i, j := range candidates(boxes) {
			if i >= j || got[pair{i, j}] {
				t.Fatalf("pair %d, %d twice, or the wrong way round", i, j)
			}
			got[pair{i, j}] = true
		}
		covered := 0
		for i := range boxes {
			for j := i + 1; j < len(boxes); j++ {
				if boxes[i].covers(&boxes[j]) || boxes[j].covers(&boxes[i]) {
					if covered++; !got[pair{i, j}] {
						t.Errorf("seed %d: rules %d and %d are no candidates", seed, i+1, j+1)
					}
				}
			}
		}
		all := len(boxes) * (len(boxes) - 1) / 2
		if covered == 0 || len(got) >= all*9/10 {
			t.Errorf("seed %d: %d candidates of %d pairs, %d covered", seed, len(got), all, covered)
		}
	}
}

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/linerate/linerate/internal/peer/policy"
)

// TestPoliciesAreYAML reads every policy that package policy accepts with a YAML library: the same
// keys, lists and words. The package reads its part of YAML itself, because root's program links no
// library for it.
func TestPoliciesAreYAML(t *testing.T) {
	const whole = `# a comment
version: 1   # another
kill_switch: off
tests:
  max_share_ratio: 0.25
  hours: 22:00-06:00
  peers: ["group:lab", 10.0.0.0/8, '2001:db8::/32']
changes:
  allow:
    - "sysctl:net.core.*"
    - ethtool:*/ring.rx   # d2
  deny: []
  max_class: d2
  max_deadline: 90s
`
	const texts = 1000
	rng := rand.New(rand.NewPCG(1, 2))
	const marks = " \t\n:#-[]'\",&*!|>?{}%@`~a1"
	accepted := 0
	for n := range texts {
		text := []byte(whole)
		for range n % 3 {
			at := rng.IntN(len(text))
			switch mark := marks[rng.IntN(len(marks))]; rng.IntN(3) {
			case 0:
				text[at] = mark
			case 1:
				text = append(text[:at], append([]byte{mark}, text[at:]...)...)
			default:
				text = append(text[:at], text[at+1:]...)
			}
		}
		p, err := policy.Parse(text)
		if err != nil {
			continue
		}
		accepted++
		var tree struct {
			KillSwitch string `yaml:"kill_switch"`
			Tests      struct {
				Hours string
				Peers []string
			}
			Changes struct {
				Allow, Deny []string
				Class       string `yaml:"max_class"`
			}
		}
		if err := yaml.Unmarshal(text, &tree); err != nil {
			t.Fatalf("YAML refuses what the policy accepts: %v\n%s", err, text)
		}
		words := func(list any) string { return strings.Trim(fmt.Sprint(list), "[]") }
		same := p.KillSwitch == (tree.KillSwitch == "on" || tree.KillSwitch == "true") &&
			words(p.Tests.Peers) == words(tree.Tests.Peers) && words(p.Changes.Allow) == words(tree.Changes.Allow) &&
			words(p.Changes.Deny) == words(tree.Changes.Deny) && (tree.Changes.Class == "" ||
			p.Changes.MaxClass.String() == tree.Changes.Class) &&
			(tree.Tests.Hours == "" || p.Tests.Hours.String() == tree.Tests.Hours)
		if !same {
			t.Fatalf("YAML reads something else: %+v, %+v\n%s", p, tree, text)
		}
	}
	if accepted < texts/3 {
		t.Errorf("only %d of %d texts are policies", accepted, texts)
	}
	t.Logf("%d policies compared", accepted)
}

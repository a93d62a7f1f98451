package read_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestRestoreEdits reads files for iptables-restore that take rules and chains out again, and
// compares with what iptables-save prints after the real programs loaded the same bytes. A file
// that iptables-legacy-restore refuses is refused here too. iptables-nft-restore 1.8.9 ends with a
// segmentation fault at -R of a rule of the same file.
func TestRestoreEdits(t *testing.T) {
	const begin = "-N web\n-N gone\n-A INPUT -s 10.0.0.0/8 -p tcp --dport 22 -j ACCEPT\n" +
		"[5:60] -A INPUT -i lo -j ACCEPT\n-A INPUT -p udp --dport 53 -j web\n-A web -j DROP\n-A gone -j DROP\n"
	const legacy, both = "legacy", "legacy nft"
	for _, c := range []struct{ edit, programs string }{
		{"-D INPUT -p tcp -s 10.0.0.0/8 -m tcp --dport 22 -j ACCEPT", both},
		{"--delete INPUT --in-interface lo -j ACCEPT", both},
		{"-D INPUT -i eth9 -j ACCEPT", both},
		{"-D INPUT ! -i lo -j ACCEPT", both},
		{"-D INPUT 2", both},
		{"-D INPUT 4", both},
		{"-D INPUT -i lo -j DROP", both},
		{"-D INPUT -i lo", both},
		{"-A INPUT -i lo -j ACCEPT\n-D INPUT -i lo -j ACCEPT", both},
		{"-A INPUT -m comment --comment \"a b\" -m limit --limit 5/sec -j DROP\n" +
			"-D INPUT -m comment --comment \"a b\" -m limit --limit 5/sec -j DROP", both},
		{"-A INPUT -m comment --comment x -m limit --limit 5/s -j DROP\n" +
			"-D INPUT -m limit --limit 5/s -m comment --comment x -j DROP", both},
		{"-R INPUT 2 -i eth0 -j DROP", legacy},
		{"-R INPUT 4 -i eth0 -j DROP", both},
		{"-R INPUT -i eth0 -j DROP", both},
		{"-F gone", both},
		{"-F INPUT", both},
		{"-F OUTPUT", both},
		{"-F nix", both},
		{"-F gone\n-X gone", both},
		{"-X gone", both},
		{"-X nix", both},
		{"-X INPUT", both},
		{"-F web\n-X web", both},
		{"-X", both},
	} {
		file := "*filter\n" + begin + c.edit + "\nCOMMIT\n"
		got, err := read.IPTables(strings.NewReader(file), nil)
		for _, program := range strings.Fields(c.programs) {
			var saved []byte
			var refused error
			inNamespace(t, func() error {
				restore := exec.Command("iptables-"+program+"-restore", "-c")
				restore.Stdin = strings.NewReader(file)
				if out, err := restore.CombinedOutput(); err != nil {
					refused = fmt.Errorf("%w: %s", err, out)
					return nil
				}
				var err error
				saved, err = exec.Command("iptables-"+program+"-save", "-c").Output()
				return err
			})
			if refused != nil || err != nil {
				if (refused == nil) != (err == nil) {
					t.Errorf("%q: iptables-%s: %v; here: %v", c.edit, program, refused, err)
				}
				continue
			}
			want, problem := read.IPTables(strings.NewReader(string(saved)), nil)
			if problem != nil {
				t.Fatal(problem)
			}
			if a, b := meanings(got), meanings(want); !slices.Equal(a, b) {
				t.Errorf("%q: iptables-%s has\n%s\nhere:\n%s", c.edit, program, strings.Join(b, "\n"), strings.Join(a, "\n"))
			}
		}
	}
	// What the two programs do not do alike is refused.
	if _, err := read.IPTables(strings.NewReader("*filter\n"+begin+"-F\nCOMMIT\n"), nil); err == nil ||
		!strings.Contains(err.Error(), "name the chain") {
		t.Errorf("-F after rules: %v", err)
	}
	if _, err := read.IPTables(strings.NewReader("*filter\n-F\n-X\n"+begin+"COMMIT\n"), nil); err != nil {
		t.Errorf("-F before rules: %v", err)
	}
}

// meanings are the chains of the filter table with their rules.
func meanings(r *ruleset.Ruleset) []string {
	var all []string
	for _, c := range r.Tables[0].Chains {
		if len(c.Rules) == 0 && c.Hook != "" {
			continue // the program prints a chain that the file does not name
		}
		all = append(all, "chain "+c.Name)
		for _, rule := range c.Rules {
			text := c.Name + ":"
			for _, s := range rule.Statements {
				if counter, ok := s.(*ruleset.Counter); ok {
					text += fmt.Sprintf(" [%d:%d]", counter.Packets, counter.Bytes)
					continue
				}
				text += fmt.Sprintf(" %+v", s)
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

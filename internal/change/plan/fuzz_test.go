package plan_test

import (
	"os"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/plan"
)

// FuzzReadSituation: no text makes a panic, and whatever is accepted makes a script in which every
// command is one that the plan has; a name cannot add one.
func FuzzReadSituation(f *testing.F) {
	for _, name := range []string{"freebsd-14-firewall", "illumos-nfs", "windows-2022-latency", "rhel-8-latency"} {
		text, err := os.ReadFile("testdata/plans/" + name + ".situation")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("link: 1e400\nrtt: 9999w\nmemory: 1\nrole: bulk\nos: linux\nconnections: 1e8\n")
	f.Add("link: 1G\nrole: latency\nos: debian\nrelease: 12\ninterface: eth0;reboot\n")
	f.Add("link: 1G\nrole: latency\nos: debian\nrelease: 12\ninterface: --help\n")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := plan.ReadSituation([]byte(text))
		if err != nil {
			return
		}
		s, err := g.Resolve()
		if err != nil {
			return
		}
		p, err := plan.Make(s)
		if err != nil {
			return
		}
		known := map[string]bool{}
		for _, l := range p.Lines {
			for _, c := range append(l.Commands, l.Undo...) {
				known[c] = true
				if strings.ContainsAny(c, "\n\r") || strings.Contains(c, " --") {
					t.Errorf("%q: command %q", text, c)
				}
			}
		}
		inFile := false
		for _, line := range strings.Split(p.Script()+p.UndoScript(), "\n") {
			word, _, _ := strings.Cut(line, " ")
			switch {
			case strings.HasSuffix(line, "<<'END'"):
				inFile = true
			case line == "END":
				inFile = false
			case inFile || known[line] || line == "" || strings.ContainsAny(word[:1], "#@$"):
			case !strings.Contains(" rem set if mkdir chmod rm rmdir sed cat ", " "+word+" "):
				t.Errorf("%q: the script has the line %q", text, line)
			}
		}
	})
}

package plan_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/plan"
)

// TestReleasesOfFreeBSDAndWindows holds what a plan writes to what the release has: commands that
// show a value must exist, undo must have the default of the release, and a reason must be true of
// the role.
func TestReleasesOfFreeBSDAndWindows(t *testing.T) {
	const old2003 = "link: 1G\nmemory: 4GiB\nrole: router\nos: windows\nrelease: 2003\n"
	for name, c := range map[string]struct {
		situation, golden string
		want, never       []string
	}{
		// kern.conftxt exists only in kernels with INCLUDE_CONFIG_FILE, kern.polling in those with
		// polling.
		"show": {golden: "freebsd-5-firewall",
			want: []string{"#   sysctl kern.polling\n"}, never: []string{"kern.conftxt"}},
		"undo": {golden: "freebsd-5-firewall",
			want: []string{"sysctl kern.polling.enable=0\n"}, never: []string{"BEFORE_"}},
		"clusters": {golden: "freebsd-6-bulk",
			want: []string{"1/8 of\n# memory.\n"}, never: []string{"what the kernel gives"}},
		"by memory": {golden: "freebsd-14-bulk", want: []string{"what the kernel gives to clusters"}},
		// A listener has the length of its queue since listen(2), a socket its size since socket(2).
		"queue": {golden: "freebsd-15-web", want: []string{"By hand: restart the servers"}},
		"udp":   {golden: "freebsd-15-nameserver", want: []string{"By hand: restart the servers"}},
		// The reason of a host that does not route is wrong for a router, and for a newer stack.
		"new router": {golden: "windows-2025-router",
			want: []string{"described for the stack"}, never: []string{"routing nothing"}},
		"old router": {situation: old2003, want: []string{"This host routes"}, never: []string{"leave it out"}},
		"no router":  {golden: "windows-2003-web", want: []string{"routing nothing"}, never: []string{"This host routes"}},
	} {
		var p *plan.Plan
		if c.golden != "" {
			p = read(t, "testdata/plans/"+c.golden+".situation")
		} else {
			p = parsed(t, c.situation)
		}
		text := p.Script() + p.UndoScript()
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: the plan lacks %q:\n%s", name, w, text)
			}
		}
		for _, n := range c.never {
			if strings.Contains(text, n) {
				t.Errorf("%s: the plan has %q:\n%s", name, n, text)
			}
		}
	}
}

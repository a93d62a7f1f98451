package persist

import (
	"strings"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// property plans for a property of ipadm or dladm: a script of its own, which sets the property at
// every start of the system, as set does while it runs. The files of the two programs are their
// own, and a command would change them outside the journal. A script below rc2.d runs after the
// interfaces are up (init.d(5), smf(7): svc:/milestone/multi-user runs the scripts that are there).
//
// The MTU of a link cannot be set after its interface is up, so it is for the user.
func (p *Planner) property(s *Step) {
	id, v := s.Change.Knob, string(s.Change.To)
	const dir = "etc/rc2.d"
	if id.Kind() == knob.KindDladm && id.Attribute() == "mtu" || !p.exists(dir) || !plain(v) || !plain(id.Subject()) ||
		!plain(id.Attribute()) {
		s.Line = byHand(id, s.Change.To)
		return
	}
	command := "ipadm set-prop -t -p " + id.Attribute() + "=" + v + " " + id.Subject()
	if id.Kind() == knob.KindDladm {
		command = "dladm set-linkprop -t -p " + id.Attribute() + "=" + v + " " + id.Subject()
	}
	s.Format = StartScript
	// The numbers of changes order the scripts, so that a cap comes before what it caps.
	s.Files = []journal.File{{Path: "/" + dir + "/S90linerate-" + s.Change.ID, Mode: 0o744,
		Content: "#!/sbin/sh\n" + s.header + "case \"$1\" in start) /usr/sbin/" + command + " ;; esac\n"}}
	s.Notes = append(s.Notes, "the property is set when the interfaces are up, so connections of earlier services have "+
		"its old value")
}

// plain reports whether a text is one word of a shell that has no meaning of its own.
func plain(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.,-", r))
	})
}

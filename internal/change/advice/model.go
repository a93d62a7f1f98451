package advice

import (
	"slices"

	"github.com/linerate/linerate/internal/change/knob"
)

// OS is an operating system that advice can be for. The zero value is for advice with the same
// meaning on several systems.
type OS string

// The systems. Their words are those of GOOS.
const (
	Linux   OS = "linux"
	FreeBSD OS = "freebsd"
	NetBSD  OS = "netbsd"
	Darwin  OS = "darwin"
	Illumos OS = "illumos"
	Solaris OS = "solaris"
	Windows OS = "windows"
)

// OpenBSD is recognised and not judged: there are no facts about it, and those of FreeBSD do not
// hold for it.
const OpenBSD OS = "openbsd"

// Systems lists every system that advice can be judged for.
func Systems() []OS { return []OS{Linux, FreeBSD, NetBSD, Darwin, Illumos, Solaris, Windows} }

// name is how users write the system, for sentences; the values of OS are for flags and documents.
func (o OS) name() string {
	switch o {
	case Linux:
		return "Linux"
	case FreeBSD:
		return "FreeBSD"
	case NetBSD:
		return "NetBSD"
	case OpenBSD:
		return "OpenBSD"
	case Darwin:
		return "macOS"
	case Illumos:
		return "illumos"
	case Solaris:
		return "Solaris"
	case Windows:
		return "Windows"
	}
	return "any system"
}

// covers reports whether advice for other is advice for o as well. Solaris and illumos share their
// names of settings, since illumos grew out of OpenSolaris.
func (o OS) covers(other OS) bool {
	return o == other || other == "" || o.family() == other.family()
}

// family returns the one of both under which the facts of Solaris and illumos are kept.
func (o OS) family() OS {
	if o == Illumos {
		return Solaris
	}
	return o
}

// Setting is one setting in a text, before it is judged. A line may contain several settings, and
// several lines may set the same one.
type Setting struct {
	Line  int    // first line in the text, counted from 1
	Text  string // the line as in the text, without blanks around; a very long one is cut
	OS    OS     // whose setting it is by its name or its command; empty when several systems have it
	Knob  string // name in the notation of package knob, or one of its kin; see the documentation of the package
	Value string // as written, without quotes; several numbers are separated by one blank
}

// Advice is a parsed text. Unread lines are separate from settings because there are no facts to
// look up for them. They are kept because a user who checks a file wants to know which lines were
// not checked.
type Advice struct {
	Settings []Setting // in the order of the text
	Unread   []Setting // lines that look like settings and are of no form that is known; Knob and Value are empty
	Lines    int       // all lines of the text
}

// Verdict is what has become of a piece of advice. Its words are part of the check-advice document
// and of --fail-on.
type Verdict string

// The verdicts.
const (
	StillRight Verdict = "still-right" // the setting exists, and setting it so can still help where its symptom is seen
	NowDefault Verdict = "now-default" // the target does this by default
	Ignored    Verdict = "ignored"     // the target takes it without an effect, or refuses this value
	Removed    Verdict = "removed"     // the target no longer has this setting
	Harmful    Verdict = "harmful"     // it makes things worse on the target, or risks more than it can bring
	Unknown    Verdict = "unknown"     // not judged
)

// Verdicts lists all verdicts by how much action they require, from the least to the most, with
// Unknown, which requires none, first.
func Verdicts() []Verdict {
	return []Verdict{Unknown, StillRight, NowDefault, Ignored, Removed, Harmful}
}

// Rank orders verdicts by how much action they require: 0 for Unknown, more for worse; −1 for any
// other text.
func (v Verdict) Rank() int { return slices.Index(Verdicts(), v) }

// Judgement is one setting with today's knowledge about it.
type Judgement struct {
	Setting
	For     OS      // the system that it was judged for
	Verdict Verdict // never empty
	Why     string  // one or two sentences
	Since   string  // release from which this verdict holds; empty: always, or not known
	// the command, the value or the knob that has the wanted effect now; empty: nothing to do
	// instead
	Today   string
	Source  string     // where that is known from; empty only for Unknown
	Default string     // default on the target; empty: not known, or different from host to host
	Current knob.Value // present value on this host; empty: not asked, or not readable
}

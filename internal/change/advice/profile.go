package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// sectionLine is the head of a section of an ini file.
var sectionLine = pattern.New(`^\[([A-Za-z_][\w.:-]*)\]$`)

// sysctlSection is a section that only TuneD has, at any place of the file.
var sysctlSection = pattern.New(`(?m)^\s*\[sysctl\]\s*$`)

// sectionHead remembers the section that lines belong to. Other programs have a [main] too, so only
// what follows one is taken for TuneD's.
func (r *reader) sectionHead(text string) bool {
	m := sectionLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	r.section, _, _ = strings.Cut(m[1], ".")
	r.tuned = r.tuned || r.section == "main"
	r.pending, r.of.route = "", ""
	if kind := disciplines[r.section]; kind != "" {
		r.add(Linux, "qdisc:"+r.of.name()+"/root", kind)
	}
	return true
}

// tunedNetwork are the options of TuneD's plug-in for NICs, and the options of ethtool that they
// are (tuned-profiles(7)).
var tunedNetwork = table(`features=-K coalesce=-C channels=-L ring=-G pause=-A`)

// tunedSilent are sections of TuneD that set nothing themselves, and options of every section that
// only select.
var tunedSilent = setOf(`main variables script service irqbalance systemd type replace priority uname_regex cpuinfo_regex
	devices enabled summary description include`)

// profile reads an option of a TuneD profile outside of [sysctl].
func (r *reader) profile(text string) bool {
	name, value, ok := strings.Cut(text, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !r.tuned || r.section == "" || !ok || name == "" || value == "" || r.section == "sysctl" && !tunedSilent[name] {
		return false
	}
	option := tunedNetwork[name]
	switch {
	case name == "type": // of a section with a name of its own
		r.section = value
	case tunedSilent[r.section] || tunedSilent[name]:
	case r.section == "net" && option != "":
		words := strings.Fields(strings.NewReplacer("=", " ", ",", " ").Replace(value))
		r.ethtool(command{words: append([]string{"ethtool", option, "*"}, words...)})
	case r.section == "net" && name == "nf_conntrack_hashsize":
		r.add(Linux, "module:nf_conntrack/hashsize", value)
	case r.section == "net":
		r.unread()
	case strings.HasPrefix(name, "/sys/") || strings.HasPrefix(name, "/proc/"):
		r.written(value, name)
	default:
		r.add(Linux, "tuned:"+r.section+"/"+name, value)
	}
	return true
}

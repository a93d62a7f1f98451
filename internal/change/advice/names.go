package advice

import (
	"iter"
	"slices"
	"strings"
	"sync"
)

// linuxSysctls are the sysctls below net of Linux 6.18, read from /proc/sys in a fresh network
// namespace with bridge, connection tracking and MPTCP; an interface is a star. In their file a
// line that ends in a dot begins the names below it. Behind a name is its value there, unless that
// depends on memory, on modules or on the host.
type linuxSysctls struct {
	trees    map[string][]string // names by the tree that they are in: the first two parts
	defaults map[string]string   // values of a fresh namespace, by name
}

var sysctlsOfLinux = sync.OnceValue(func() linuxSysctls {
	all := linuxSysctls{map[string][]string{}, map[string]string{}}
	head := ""
	for line := range strings.Lines(knowledge()["linux-names.txt"]) {
		name, value, known := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if strings.HasSuffix(name, ".") {
			head = name
			continue
		}
		name = head + name
		all.trees[tree(name)] = append(all.trees[tree(name)], name)
		if known {
			all.defaults[name] = value
		}
	}
	return all
})

// netNameOf returns the one sysctl of net.core or of IPv4 itself that has a last part, or nothing.
func netNameOf(last string) string {
	found := ""
	for _, t := range []string{"net.core", "net.ipv4"} {
		if name := t + "." + last; slices.Contains(sysctlsOfLinux().trees[t], name) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// tree is the part of a name up to its second dot.
func tree(name string) string {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return name
	}
	return parts[0] + "." + parts[1]
}

// misspelt returns the setting that a misspelt name stands for, or nothing: a name of the kernel,
// or one that differs too much from all of them. A name that differs by an index or a number is
// another setting and no mistake.
func misspelt(id string) string {
	name, ok := strings.CutPrefix(id, "sysctl:")
	if !ok || len(name) > 120 {
		return ""
	}
	name = anyInterface(name)
	known := sysctlsOfLinux().trees[tree(name)]
	if slices.Contains(known, name) {
		return ""
	}
	best := resembling(name, func(yield func(string) bool) {
		for _, k := range known {
			if strings.Count(k, ".") == strings.Count(name, ".") && !yield(k) {
				return
			}
		}
	})
	// A longer change than two letters: the same words but for one, as in error_messages for
	// error_responses.
	if best == "" {
		best = otherWord(name)
	}
	return best
}

// absent reports whether Linux 6.18 has no setting of this name, for the trees whose names do not
// depend on what is loaded: net.core, the settings of IPv4 and IPv6 themselves, and those of an
// interface.
func absent(id string) bool {
	name, ok := strings.CutPrefix(id, "sysctl:")
	if !ok {
		return false
	}
	name = anyInterface(name)
	parts := strings.Split(name, ".")
	own := len(parts) == 3 && (parts[1] == "core" || parts[1] == "ipv4" || parts[1] == "ipv6")
	own = own || len(parts) == 4 && parts[1] == "core"
	ofInterface := len(parts) == 5 && parts[2] == "conf" && (parts[1] == "ipv4" || parts[1] == "ipv6")
	// net.ipv6.default.accept_ra, without conf.
	if len(parts) == 4 && (parts[1] == "ipv4" || parts[1] == "ipv6") && (parts[2] == "all" || parts[2] == "default") {
		return true
	}
	return parts[0] == "net" && (own || ofInterface) && !slices.Contains(sysctlsOfLinux().trees[tree(name)], name)
}

// anyInterface puts a star in the place of the interface in conf and neigh.
func anyInterface(name string) string {
	parts := strings.Split(name, ".")
	for i := 1; i+1 < len(parts); i++ {
		if (parts[i-1] == "conf" || parts[i-1] == "neigh") && parts[i] != "default" && parts[i] != "all" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// otherWord finds the one name that has the same words at its beginning, at least three of them,
// and as many in all.
func otherWord(name string) string {
	words := strings.Split(name, "_")
	if len(words) < 4 {
		return ""
	}
	found := ""
	for _, known := range sysctlsOfLinux().trees[tree(name)] {
		k := strings.Split(known, "_")
		if len(k) != len(words) || strings.Join(k[:len(k)-1], "_") != strings.Join(words[:len(words)-1], "_") {
			continue
		}
		if found != "" {
			return ""
		}
		found = known
	}
	return found
}

// resembling returns the candidate that a misspelt name stands for: the one that differs by the
// fewest letters, and by two at most. Of equals it takes the first in the alphabet. It returns
// nothing if the name is among the candidates; capital letters make no difference.
func resembling(name string, candidates iter.Seq[string]) string {
	const tooMany = 3
	name = strings.ToLower(name)
	best, least := "", tooMany
	for c := range candidates {
		d := distance(strings.ToLower(c), name, min(least+1, tooMany))
		if d == 0 {
			return ""
		}
		if d < least || d == least && d < tooMany && c < best {
			best, least = c, d
		}
	}
	return best
}

// distance returns how many letters have to be changed, added or taken away (Levenshtein), or most
// when it is that or more.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal, least := row[0], most
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
			least = min(least, row[j])
		}
		if least >= most {
			return most
		}
	}
	return row[len(b)]
}

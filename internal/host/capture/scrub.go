package capture

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// scrubber replaces everything private in one archive; equal values get equal replacements.
type scrubber struct {
	replace   *replacer
	bigEndian bool              // of the host: /proc/net/route prints addresses as the machine's numbers
	names     map[string]string // words that are names of hosts, domains and users, with their replacements
}

func newScrubber(key [keyBytes]byte) *scrubber {
	return &scrubber{replace: newReplacer(key), names: make(map[string]string)}
}

// scrub returns the archive with everything private replaced. It reads the archive twice: a name
// must be known before it can be found elsewhere.
func (s *scrubber) scrub(entries []hostfs.Entry) []hostfs.Entry {
	// Names first. A host's name is in its own file, and also in the middle of lines of unknown
	// form, where it can only be recognised once it is known.
	s.learn(entries)
	parents := make(map[string]bool)
	for _, e := range entries {
		parents[path.Dir(e.Name)] = true
	}
	out := make([]hostfs.Entry, 0, len(entries))
	for _, e := range entries {
		if e.Directory && parents[e.Name] {
			// Made from a listing and from files, so most directories are in the archive twice. A
			// capture is read by people.
			continue // Its entries imply it.
		}
		to := hostfs.Entry{Name: s.path(e.Name), Directory: e.Directory}
		switch {
		case e.Directory:
		case e.Target != "":
			// A link's target follows the same rules as the path that it leads to, element by
			// element, so it still leads there afterwards.
			to.Target = s.path(e.Target)
		default:
			to.Content = s.content(e.Name, e.Content)
			// For files with chosen names only their existence matters.
			if len(e.Content) == 0 && strings.HasPrefix(e.Name, "etc/") {
				to.Name = path.Join(path.Dir(to.Name), s.replace.name("file", path.Base(e.Name))+path.Ext(e.Name))
			}
		}
		out = append(out, to)
	}
	return out
}

// path replaces identifiers in a path. It leaves names of hosts alone: a host named vm must not
// move /proc/sys/vm. The same holds for numbers with dots, which are places on a USB bus and not
// addresses.
func (s *scrubber) path(name string) string {
	parts := strings.Split(name, "/")
	// Element by element: the text between two slashes is one name, and no rule for text could find
	// its end.
	for i, p := range parts {
		if to, ok := s.identifier(p); ok {
			parts[i] = to
			continue
		}
		parts[i] = s.interfaceName(p)
	}
	return strings.Join(parts, "/")
}

// learn finds the names in their known places, and the byte order of the host.
func (s *scrubber) learn(entries []hostfs.Entry) {
	var found []string
	for _, e := range entries {
		switch e.Name {
		// Two files of one line each are the only certain names of a host. Its names in a resolver
		// or a mail server are in files that are not read, and so are not in the archive.
		case "proc/sys/kernel/hostname", "proc/sys/kernel/domainname":
			found = append(found, strings.TrimSpace(string(e.Content)))
		case "proc/sys/kernel/arch":
			s.bigEndian = bigEndian(strings.TrimSpace(string(e.Content)))
		case "linerate/host.json":
			var h struct {
				Arch string `json:"arch"`
			}
			if json.Unmarshal(e.Content, &h) == nil && h.Arch != "" {
				s.bigEndian = s.bigEndian || bigEndian(h.Arch)
			}
		}
		if mounts(e.Name) {
			found = append(found, mountNames(string(e.Content))...)
		}
	}
	for _, name := range found {
		for _, word := range s.wordsOf(name) {
			// A name of one or two letters occurs in every second word of a table. It is replaced
			// only in the place of a name.
			if len(word) >= 3 && !kernelWord(word, entries) {
				s.names[word] = s.hostName(word)
			}
		}
	}
}

// wordsOf returns the words by which a host may be named elsewhere: with its domain, without it,
// and the domain alone.
func (s *scrubber) wordsOf(name string) []string {
	if known(name) {
		return nil
	}
	// The whole name is first, and each form is replaced separately: db7 and db7.acme.example are
	// two words in a log.
	words := []string{name}
	// The domain alone counts as a name only if it has a dot itself: the second half of db7.acme
	// may be an ordinary word, that of db7.acme.example identifies an owner.
	if label, domain, ok := strings.Cut(name, "."); ok && strings.Contains(domain, ".") {
		return append(words, label, domain)
	} else if ok {
		return append(words, label)
	}
	return words
}

// known reports whether a name identifies no one.
func known(name string) bool {
	switch name {
	// "(none)" is the kernel's name before one is set.
	case "", "(none)", "localhost", "localhost.localdomain":
		return true
	}
	return false
}

// hostName replaces the name of a host. Labels are replaced one by one, from the whole domain after
// each, so that two hosts of one domain stay in one domain.
func (s *scrubber) hostName(name string) string {
	if known(name) {
		return name
	}
	if label, domain, ok := strings.Cut(name, "."); ok && domain != "" {
		return s.replace.name("host", label) + "." + s.replace.name("domain", domain) + ".example"
	}
	return s.replace.name("host", name)
}

// kernelWord reports whether the kernel uses a word in this archive: then it is replaced only in
// the place of a name. A host named cubic must not change the name of the congestion control.
func kernelWord(word string, entries []hostfs.Entry) bool {
	for _, e := range entries {
		// Names of files in these trees are the kernel's own, and a changed path loses a setting.
		if slices.Contains(strings.Split(e.Name, "/"), word) {
			return true
		}
		ours := strings.HasPrefix(e.Name, "sys/") || strings.HasPrefix(e.Name, "proc/net/") ||
			e.Name == "proc/cpuinfo" || e.Name == "proc/meminfo" ||
			e.Name == "linerate/ethtool.json" || e.Name == "linerate/links.json" ||
			strings.HasPrefix(e.Name, "proc/sys/") && path.Base(e.Name) != "hostname" &&
				path.Base(e.Name) != "domainname"
		if !ours || !bytes.Contains(e.Content, []byte(word)) {
			continue
		}
		// Whole words only, cut as token cuts them: a host named "eth" does not match "eth0".
		for _, field := range strings.FieldsFunc(string(e.Content),
			func(r rune) bool { return r > 0x7f || !tokenByte(byte(r)) }) {
			if strings.TrimRight(field, ".:") == word {
				return true
			}
		}
	}
	return false
}

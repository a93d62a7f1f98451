package capture

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// scrubber replaces what is nobody else's business in one archive, and what is the same by the
// same.
type scrubber struct {
	replace   *replacer
	bigEndian bool              // of the host: /proc/net/route prints addresses as the machine's numbers
	names     map[string]string // words that are names of hosts, domains and users, with what stands for them
}

func newScrubber(key [keyBytes]byte) *scrubber {
	return &scrubber{replace: newReplacer(key), names: make(map[string]string)}
}

// scrub gives the archive with everything replaced. It reads it twice: a name has to be known
// before it can be found elsewhere.
func (s *scrubber) scrub(entries []hostfs.Entry) []hostfs.Entry {
	// Names first. A host is called by its name in its own file, and again in the middle of lines
	// of which nobody knows the form; only who has read the first can see the second.
	s.learn(entries)
	parents := make(map[string]bool)
	for _, e := range entries {
		parents[path.Dir(e.Name)] = true
	}
	out := make([]hostfs.Entry, 0, len(entries))
	for _, e := range entries {
		if e.Directory && parents[e.Name] {
			// Made of a listing and of files alike, so most directories are in the archive twice
			// over. A capture is read by people.
			continue // What is in it says that it is there.
		}
		to := hostfs.Entry{Name: s.path(e.Name), Directory: e.Directory}
		switch {
		case e.Directory:
		case e.Target != "":
			// A link is replaced by the same rules as the path that it leads to, element by
			// element, so it still leads there afterwards.
			to.Target = s.path(e.Target)
		default:
			to.Content = s.content(e.Name, e.Content)
			// Of files that somebody named it matters that there is one of its kind.
			if len(e.Content) == 0 && strings.HasPrefix(e.Name, "etc/") {
				to.Name = path.Join(path.Dir(to.Name), s.replace.name("file", path.Base(e.Name))+path.Ext(e.Name))
			}
		}
		out = append(out, to)
	}
	return out
}

// path replaces identifiers in a path. Names of hosts are left alone here: a host called vm must
// not move /proc/sys/vm. So are numbers with dots, which are places on a USB bus and not addresses.
func (s *scrubber) path(name string) string {
	parts := strings.Split(name, "/")
	// Element by element: what stands between two slashes is one name, and no rule for text could
	// tell where it ends.
	for i, p := range parts {
		if to, ok := s.identifier(p); ok {
			parts[i] = to
			continue
		}
		parts[i] = s.interfaceName(p)
	}
	return strings.Join(parts, "/")
}

// learn finds the names that stand in their known places, and the byte order of the host.
func (s *scrubber) learn(entries []hostfs.Entry) {
	var found []string
	for _, e := range entries {
		switch e.Name {
		// Two files of a line each are all that names a host for certain. What the resolver or a
		// mail server calls it is in files that no reader looks at, and what is not read is not in
		// the archive.
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
			// A name of one or two letters is in every second word of a table. It is replaced where
			// it stands as a name, and nowhere else.
			if len(word) >= 3 && !kernelWord(word, entries) {
				s.names[word] = s.hostName(word)
			}
		}
	}
}

// wordsOf are the words by which a host may be called elsewhere: with its domain, without it, and
// the domain alone.
func (s *scrubber) wordsOf(name string) []string {
	if known(name) {
		return nil
	}
	// The whole name is first, and each form is replaced as itself: db7 and db7.acme.example are
	// two words in a log.
	words := []string{name}
	// The domain alone counts as a name only if it has a dot itself: of db7.acme the second half
	// may be a word of its own, of db7.acme.example the second half is somebody.
	if label, domain, ok := strings.Cut(name, "."); ok && strings.Contains(domain, ".") {
		return append(words, label, domain)
	} else if ok {
		return append(words, label)
	}
	return words
}

// known are names that say nothing about anybody.
func known(name string) bool {
	switch name {
	// "(none)" is what the kernel says before anybody has given a name.
	case "", "(none)", "localhost", "localhost.localdomain":
		return true
	}
	return false
}

// hostName replaces the name of a host. Labels are replaced one by one, from the whole domain
// behind each: two hosts of one domain are that afterwards.
func (s *scrubber) hostName(name string) string {
	if known(name) {
		return name
	}
	if label, domain, ok := strings.Cut(name, "."); ok && domain != "" {
		return s.replace.name("host", label) + "." + s.replace.name("domain", domain) + ".example"
	}
	return s.replace.name("host", name)
}

// kernelWord tells whether the kernel uses a word for something of its own in this archive: then it
// is replaced only where it stands as a name. A host called cubic must not change what the
// congestion control is called.
func kernelWord(word string, entries []hostfs.Entry) bool {
	for _, e := range entries {
		// Names of files in these trees are the kernel's own, and a path that is changed is a
		// setting that is lost.
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
		// Whole words only, cut as token cuts them: a host called "eth" does not stand in "eth0".
		for _, field := range strings.FieldsFunc(string(e.Content),
			func(r rune) bool { return r > 0x7f || !tokenByte(byte(r)) }) {
			if strings.TrimRight(field, ".:") == word {
				return true
			}
		}
	}
	return false
}

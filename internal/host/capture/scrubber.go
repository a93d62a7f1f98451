package capture

import "crypto/rand"

// Scrubber replaces in other texts what [Take] replaces in an archive: equal values by equal
// replacements, with a random key that is then forgotten.
type Scrubber struct {
	named *scrubber // knows the hosts
	bare  *scrubber // the same replacements, and no names
}

// NewScrubber returns a Scrubber that knows hosts by their names.
func NewScrubber(hosts ...string) *Scrubber {
	var key [keyBytes]byte
	rand.Read(key[:]) // Never fails (Go 1.24).
	named := newScrubber(key)
	bare := &scrubber{replace: named.replace, names: map[string]string{}}
	for _, host := range hosts {
		for _, word := range named.wordsOf(host) {
			named.names[word] = named.hostName(word)
		}
	}
	return &Scrubber{named: named, bare: bare}
}

// Text replaces addresses and identifiers. Names of hosts stay: one may be a word of the kernel,
// such as vm or cubic.
func (s *Scrubber) Text(in string) string { return s.bare.text(in) }

// Sentence is Text for prose, in which names of the hosts are replaced too.
func (s *Scrubber) Sentence(in string) string { return s.named.text(in) }

// Host replaces the name of a host.
func (s *Scrubber) Host(name string) string { return s.named.hostName(name) }

package capture

import "crypto/rand"

// Scrubber replaces in texts that are in no archive what [Take] replaces in one: the same by the
// same, by a key that is random and forgotten.
type Scrubber struct {
	named *scrubber // knows the hosts
	bare  *scrubber // the same replacements, and no names
}

// NewScrubber makes one that knows hosts by their names.
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

// Text replaces addresses and identifiers. Names of hosts stay: one may be a word of the kernel's,
// as vm or cubic are.
func (s *Scrubber) Text(in string) string { return s.bare.text(in) }

// Sentence is Text for words of people, in which names of the hosts are replaced too.
func (s *Scrubber) Sentence(in string) string { return s.named.text(in) }

// Host replaces what stands as the name of a host.
func (s *Scrubber) Host(name string) string { return s.named.hostName(name) }

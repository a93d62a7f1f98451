package printed

import (
	"iter"
	"strconv"
	"strings"
)

// lines returns the lines of a text without their ends. Reports may pass through systems that put a
// carriage return before them.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimRight(line, "\r\n")) {
				return
			}
		}
	}
}

// pair cuts "key: value" at the first colon and trims blanks.
func pair(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, ":")
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// pairs calls f with each "key: value" of a text.
//
//go:noinline // the loop's copies took a kilobyte each
func pairs(text string, f func(key, value string)) {
	for line := range lines(text) {
		if key, value, ok := pair(line); ok {
			f(key, value)
		}
	}
}

// count parses a whole text as a decimal number.
func count(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// small is count for numbers that the kernel keeps in 32 bits.
func small(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil
}

// after returns the word that follows another one, as iproute2 prints its attributes: "mtu 1500
// qdisc fq".
func after(words []string, key string) (string, bool) {
	for i, w := range words[:max(len(words)-1, 0)] {
		if w == key {
			return words[i+1], true
		}
	}
	return "", false
}

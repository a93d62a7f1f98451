package printed

import (
	"iter"
	"strconv"
	"strings"
)

// lines gives the lines of a text without their ends. Reports pass through systems that write a
// carriage return in front of them.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimRight(line, "\r\n")) {
				return
			}
		}
	}
}

// pair cuts "key: value" at the first colon, blanks taken off.
func pair(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, ":")
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// count reads a decimal number that stands alone.
func count(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// small is count for what the kernel keeps in 32 bits.
func small(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil
}

// after gives the word that follows another one, as iproute2 writes its attributes: "mtu 1500 qdisc
// fq".
func after(words []string, key string) (string, bool) {
	for i, w := range words[:max(len(words)-1, 0)] {
		if w == key {
			return words[i+1], true
		}
	}
	return "", false
}

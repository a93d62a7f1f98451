package mesh

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// newRand returns a generator that depends on the seed alone, so that a plan can be made again.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6d657368)) }

// pair is the name of two: with a blank between them, and in quotes where one has a blank itself.
func pair(first, second string) string { return quoted(first) + " " + quoted(second) }

func quoted(name string) string {
	if strings.ContainsAny(name, ` "`) {
		return strconv.Quote(name)
	}
	return name
}

// ofPair reports whether a name is the first one of a pair, or the second one.
func ofPair(pair, name string) (first, second bool) {
	return strings.HasPrefix(pair, quoted(name)+" "), strings.HasSuffix(pair, " "+quoted(name))
}

package mesh

import (
	"math/rand/v2"
	"strings"
)

// newRand returns a generator that depends on the seed alone, so that a plan can be made again.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6d657368)) }

// cut parts a name of two.
func cut(name string) (first, second string) {
	first, second, _ = strings.Cut(name, " ")
	return first, second
}

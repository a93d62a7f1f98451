package sorting_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/base/sorting"
)

// record is what the program sorts: a key, which many records may share, and more.
type record struct {
	key    int
	name   string
	number int // its place before the sort
	values [3]float64
}

func byKey(a, b record) int { return cmp.Compare(a.key, b.key) }

// records returns n records with keys below the given bound, in the order that the seed decides.
func records(n, keys int, seed uint64) []record {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	list := make([]record, n)
	for i := range list {
		key := random.IntN(keys)
		list[i] = record{key: key, name: fmt.Sprint("eth", key), number: i, values: [3]float64{float64(i)}}
	}
	return list
}

// TestOrder compares with the functions of package slices on lists with many equal keys. Ties must
// end in the same order too: documents show them.
func TestOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 12, 13, 50, 51, 1000} {
		for _, keys := range []int{1, 2, 7, 100, 1 << 30} {
			for seed := range uint64(3) {
				given := records(n, keys, seed)
				want, got := slices.Clone(given), slices.Clone(given)
				slices.SortFunc(want, byKey)
				sorting.Func(got, byKey)
				if !slices.Equal(got, want) {
					t.Errorf("Func of %d records with %d keys, seed %d: another order than slices.SortFunc", n, keys, seed)
				}
				want, got = slices.Clone(given), slices.Clone(given)
				slices.SortStableFunc(want, byKey)
				sorting.StableFunc(got, byKey)
				if !slices.Equal(got, want) {
					t.Errorf("StableFunc of %d records with %d keys, seed %d: another order than slices.SortStableFunc",
						n, keys, seed)
				}
			}
		}
	}
}

func TestSorted(t *testing.T) {
	// Lists that are sorted already, and the reverse, take branches of their own.
	up := make([]record, 300)
	for i := range up {
		up[i] = record{key: i}
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	for _, list := range [][]record{slices.Clone(up), down} {
		sorting.Func(list, byKey)
		if !slices.Equal(list, up) {
			t.Error("Func left a list unsorted")
		}
	}
}

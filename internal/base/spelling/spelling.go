package spelling

import (
	"strings"

	"github.com/spf13/pflag"
)

// Near returns the names that a mistyped one may mean, in their order: those near to it and those
// that begin with it. Case does not matter.
func Near(names []string, typed string) []string {
	typed = strings.ToLower(typed)
	most := min(2, len(typed)/3)
	var near []string
	for _, name := range names {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, typed) || Distance(lower, typed) <= most {
			near = append(near, name)
		}
	}
	return near
}

// Meant returns the question for the names that [Near] found, each behind what is typed before it,
// as in "did you mean --rate or --rated?".
func Meant(before string, near []string) string {
	return "did you mean " + before + strings.Join(near, " or "+before) + "?"
}

// Flags returns the visible flags of a set that a mistyped name may mean, in their order. A letter
// means none, because it begins too many names.
func Flags(set *pflag.FlagSet, typed string) []string {
	if len(typed) < 2 {
		return nil
	}
	var names []string
	set.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return Near(names, typed)
}

// Valueless returns the name of a flag that was given the empty value, as the shell passes for a
// variable that is not set, or "": `undo --run "$RUN"` would undo the newest change. A flag whose
// usage says what "empty:" means may have it.
func Valueless(set *pflag.FlagSet) (name string) {
	set.Visit(func(f *pflag.Flag) {
		switch f.Value.String() {
		case "", "[]", `[""]`:
			if !strings.Contains(f.Usage, "empty:") {
				name = f.Name
			}
		}
	})
	return name
}

// Distance returns how many letters are inserted, deleted, changed, or swapped with their neighbour
// between two texts.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before []int // the row before the last one
	last := make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}

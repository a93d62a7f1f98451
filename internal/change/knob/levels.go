package knob

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// beginnings are, by unit, what users try first when a knob is off (0) or without a bound (its
// largest value): such a value has no half and no double that mean anything.
var beginnings = map[string][]int64{
	"microseconds": {20, 50, 100},
	"nanoseconds":  {20_000, 200_000},
	"polls":        {2, 10},
	"flows":        {4096, 32768},
	"bytes":        {131_072, 1_048_576},
	"segments":     {20, 40},
}

// fewLevels is how wide a range may be to try every value of it.
const fewLevels = 4

// Levels returns the values worth trying instead of the present one without a proposal: half, twice
// and four times a number, the other position of a switch, the other words of a choice. Every level
// is canonical and within the range, none is the present value, and numbers ascend. Nil: the
// definition suggests none, as for masks, lists and texts.
func (d Definition) Levels(present Value) []Value {
	now, err := d.Canonical(present)
	if err != nil {
		return nil
	}
	var raw []string
	switch d.Form {
	case FormBool:
		raw = []string{"0", "1"}
	case FormSwitch:
		raw = []string{"off", "on"}
	case FormWord:
		raw = d.Choices
	case FormInt:
		raw = d.numberLevels(string(now))
	case FormInts:
		raw = d.numbersLevels(strings.Fields(string(now)))
	}
	var out []Value
	for _, r := range raw {
		v, err := d.Normalize(Value(r))
		if err == nil && v != now && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// numberLevels returns those of one number, ascending.
func (d Definition) numberLevels(now string) []string {
	n, err := strconv.ParseInt(now, 10, 64)
	if err != nil {
		return nil
	}
	if d.Min != nil && d.Max != nil && *d.Max-*d.Min <= fewLevels && *d.Max-*d.Min >= 0 {
		var all []string
		for v := *d.Min; v <= *d.Max; v++ {
			all = append(all, strconv.FormatInt(v, 10))
		}
		return all
	}
	if n <= 0 || d.Max != nil && n >= *d.Max {
		levels := slices.Clone(beginnings[d.Unit])
		// The usual value is a better start than any of them, if it is a different number.
		if usual, err := strconv.ParseInt(d.Default, 10, 64); err == nil && usual > 0 && usual != n {
			levels = append(levels, usual)
		}
		slices.Sort(levels)
		return texts(levels)
	}
	return texts(scaled(n))
}

// scaled returns half, twice and four times a number, without duplicates.
func scaled(n int64) []int64 {
	var out []int64
	if n >= 2 {
		out = append(out, n/2)
	}
	for _, times := range []int64{2, 4} {
		if n <= math.MaxInt64/times {
			out = append(out, n*times)
		}
	}
	return out
}

// numbersLevels returns those of several numbers: of "minimum start maximum" only the maximum is
// scaled, of thresholds in pages all. A range of ports has none: twice a port means nothing.
func (d Definition) numbersLevels(now []string) []string {
	var numbers []int64
	for _, f := range now {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n <= 0 {
			return nil
		}
		numbers = append(numbers, n)
	}
	if !d.Ascending || len(numbers) == 0 || d.Unit != "bytes" && d.Unit != "pages" {
		return nil
	}
	last := len(numbers) - 1
	var all []string
	for _, largest := range scaled(numbers[last]) {
		level := slices.Clone(numbers)
		level[last] = largest
		if d.Unit == "pages" {
			for i := range last {
				level[i] = int64(float64(numbers[i]) / float64(numbers[last]) * float64(largest))
			}
		}
		if slices.IsSorted(level) { // half of the maximum may be below the start
			all = append(all, strings.Join(texts(level), " "))
		}
	}
	return all
}

// texts writes numbers.
func texts(numbers []int64) []string {
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = strconv.FormatInt(n, 10)
	}
	return out
}

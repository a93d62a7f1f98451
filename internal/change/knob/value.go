package knob

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Squeeze trims a value and turns every run of blanks, tabs and line ends into one blank: the
// kernel separates numbers with tabs.
func (v Value) Squeeze() Value { return Value(strings.Join(strings.Fields(string(v)), " ")) }

// The words of ethtool(8), the digits of sysctls and the letters of module parameters are accepted
// for both forms; each form is written in its own words.
func parseBool(s string) (on, ok bool) {
	switch strings.ToLower(s) {
	case "1", "on", "yes", "true", "y":
		return true, true
	case "0", "off", "no", "false", "n":
		return false, true
	}
	return false, false
}

// normalizeMask drops leading zeros of the whole mask and fills the lower groups to eight digits,
// as the kernel prints them for any number of CPUs.
//
// The kernel prints as many groups as it has CPUs compiled in (%*pb), so the same mask has
// different texts on different kernels.
func normalizeMask(s Value, refuse error) (Value, error) {
	var words []uint32
	for _, g := range strings.Split(string(s), ",") {
		n, err := strconv.ParseUint(g, 16, 32)
		if err != nil || len(g) > 8 {
			return "", refuse
		}
		words = append(words, uint32(n))
	}
	for len(words) > 1 && words[0] == 0 {
		words = words[1:]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%x", words[0])
	for _, w := range words[1:] {
		fmt.Fprintf(&b, ",%08x", w)
	}
	return Value(b.String()), nil
}

// normalizeRanges sorts a list and merges what touches, as the kernel prints it.
//
// The kernel keeps such a list as a bitmap and prints it sorted and merged, so that any other
// spelling would read back as a foreign change.
func (d Definition) normalizeRanges(s Value, ranged bool, refuse error) (Value, error) {
	type span struct{ from, to int64 }
	var spans []span
	for _, part := range strings.Split(string(s), ",") {
		if s == "" {
			break
		}
		first, last, pair := strings.Cut(part, "-")
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil || from < 0 {
			return "", refuse
		}
		to := from
		if pair {
			if to, err = strconv.ParseInt(last, 10, 64); err != nil || to < from {
				return "", refuse
			}
		}
		if ranged && (d.Min != nil && from < *d.Min || d.Max != nil && to > *d.Max) {
			return "", refuse
		}
		spans = append(spans, span{from, to})
	}
	sorting.Func(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var merged []span
	for _, x := range spans {
		// Compared by subtraction: the end of the largest number has no successor.
		if n := len(merged); n > 0 && x.from-merged[n-1].to <= 1 {
			merged[n-1].to = max(merged[n-1].to, x.to)
			continue
		}
		merged = append(merged, x)
	}
	texts := make([]string, len(merged))
	for i, x := range merged {
		texts[i] = strconv.FormatInt(x.from, 10)
		if x.to > x.from {
			texts[i] += "-" + strconv.FormatInt(x.to, 10)
		}
	}
	return Value(strings.Join(texts, ",")), nil
}

// normalizeList keeps the order, which assigns each number.
func (d Definition) normalizeList(s Value, ranged bool, refuse error) (Value, error) {
	parts := strings.Split(string(s), ",")
	for i, part := range parts {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || ranged && (d.Min != nil && n < *d.Min || d.Max != nil && n > *d.Max) {
			return "", refuse
		}
		parts[i] = strconv.FormatInt(n, 10)
	}
	return Value(strings.Join(parts, ",")), nil
}

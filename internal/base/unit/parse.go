package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrSyntax is wrapped by every error of the Parse functions.
var ErrSyntax = errors.New("not understood")

// What the Parse functions accept at most. A larger number is a slip, and products of two of them
// would not fit into the types of results.
const (
	// MostBitRate is a hundred times the rate of the fastest links between computers.
	MostBitRate BitRate = 1e15
	// MostCount is above every counter of a kernel of one day, and exact in a float64.
	MostCount = 1e15
	// MostSeconds is the longest time.Duration, 292 years.
	MostSeconds = float64(1<<63) / 1e9
)

// ParseBitRate reads a rate: "941 Mb/s", "1.5Gbit/s", "10Gbps", "100mbit", "250k", or a plain
// number of bits per second. Prefixes are decimal. It refuses negative rates and bytes per second
// ("MB/s").
//
// The case of prefixes does not matter, since millibits make no sense. The case of the B of bytes
// matters, because it alone distinguishes "MB/s" from "Mb/s".
func ParseBitRate(s string) (BitRate, error) {
	fail := func(why string) (BitRate, error) {
		return 0, fmt.Errorf("bit rate %q: %w: %s", s, ErrSyntax, why)
	}
	value, suffix, err := splitNumber(s)
	if err != nil {
		return fail(err.Error())
	}
	if strings.HasSuffix(suffix, "B/s") || strings.HasSuffix(suffix, "Bps") {
		return fail("rates are in bits, write Mb/s or Mbit")
	}
	for _, name := range []string{"bit/s", "bits/s", "b/s", "bps", "bit"} {
		if rest, ok := cutSuffixFold(suffix, name); ok {
			suffix = rest
			break
		}
	}
	factor, ok := decimalFactor(suffix)
	if !ok {
		return fail("unit is one of b/s, kb/s, Mb/s, Gb/s, Tb/s")
	}
	rate := value * factor
	switch {
	case rate < 0:
		return fail("a rate is 0 or more")
	case rate > float64(MostBitRate):
		return fail("more than any link carries, " + MostBitRate.String())
	case rate > 0 && rate < 1:
		return fail("less than 1 b/s")
	}
	return BitRate(rate), nil
}

// ParseBytes reads an amount: "6 MiB", "900M" and "64k" (1024-based), "10 MB" (1000-based), "1500
// B" or a plain number of bytes. It rounds fractions to the nearest whole byte.
//
// It accepts negative amounts; the flag that uses it decides whether they are valid.
func ParseBytes(s string) (Bytes, error) {
	fail := func(why string) (Bytes, error) {
		return 0, fmt.Errorf("amount of bytes %q: %w: %s", s, ErrSyntax, why)
	}
	value, suffix, err := splitNumber(s)
	if err != nil {
		return fail(err.Error())
	}
	base, written := 1024.0, suffix
	switch {
	case strings.HasSuffix(suffix, "iB"), strings.HasSuffix(suffix, "ib"):
		suffix = suffix[:len(suffix)-2]
	case len(suffix) > 1 && (strings.HasSuffix(suffix, "B") || strings.HasSuffix(suffix, "b")):
		base, suffix = 1000, suffix[:len(suffix)-1]
	case suffix == "B" || suffix == "b":
		suffix = ""
	case strings.HasSuffix(suffix, "i"):
		suffix = suffix[:len(suffix)-1]
	}
	power := strings.Index("kmgtpe", strings.ToLower(suffix)) + 1
	if suffix == "" && !strings.HasPrefix(strings.ToLower(written), "i") {
		power = 0
	} else if len(suffix) != 1 || power == 0 {
		return fail("unit is one of B, KiB, MiB, GiB, TiB")
	}
	// The exact path keeps every bit of numbers beyond 2^53.
	if whole, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
		return Bytes(whole), nil
	}
	amount := math.Round(value * math.Pow(base, float64(power)))
	// 2^63 itself is the first float64 that does not fit.
	if amount >= 1<<63 || amount < -(1<<63) {
		return fail("out of range")
	}
	return Bytes(amount), nil
}

// ParseSeconds reads a time in seconds: "1.24 ms", "250us", "12 s", "2 min 05 s", "3 h 10 min", "41
// d 7 h", Go's "1m30s", or a plain number of seconds.
//
// A bare number is in seconds, not nanoseconds, as in the JSON documents.
func ParseSeconds(s string) (float64, error) {
	value, err := parseSeconds(s)
	// A NaN is not less than anything.
	if err == nil && !(math.Abs(value) < MostSeconds) {
		err = ErrLong
	}
	if err != nil {
		return 0, fmt.Errorf("time %q: %w: %w", s, ErrSyntax, err)
	}
	return value, nil
}

// ErrLong refuses a time that no time.Duration holds.
var ErrLong = errors.New("out of range: write a time of less than 292 years")

var errTime = errors.New("write it like 250ms, 10s or 5m")

// parseSeconds is [ParseSeconds] without bounds.
func parseSeconds(s string) (float64, error) {
	trimmed := strings.TrimSpace(s)
	if value, err := strconv.ParseFloat(trimmed, 64); err == nil {
		return value, nil
	}
	// One number with one unit first: a Go duration would truncate it to whole nanoseconds.
	if value, suffix, err := splitNumber(s); err == nil {
		if factor, ok := secondsPer(suffix); ok && !math.IsInf(value*factor, 0) {
			return value * factor, nil
		}
		// Days with hours and hours with minutes; a Go duration is limited to 292 years.
		for _, two := range []struct {
			first, second string
			seconds, each float64
			fewerThan     float64
		}{{"d", "h", 86400, 3600, 24}, {"h", "min", 3600, 60, 60}} {
			rest, ok := strings.CutPrefix(suffix, two.first)
			if !ok {
				continue
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, two.second)), 64)
			if seconds := value*two.seconds + math.Copysign(n*two.each, value); err == nil && n >= 0 &&
				n < two.fewerThan && !math.IsInf(seconds, 0) {
				return seconds, nil
			}
		}
	}
	compact := strings.ReplaceAll(strings.ReplaceAll(trimmed, "min", "m"), " ", "")
	if d, err := time.ParseDuration(compact); err == nil {
		return d.Seconds(), nil
	}
	return 0, errTime
}

// ParseCount reads a count: "4321", "12.3 k", "1.24M". Prefixes are decimal.
func ParseCount(s string) (float64, error) {
	value, suffix, err := splitNumber(s)
	if err != nil {
		return 0, fmt.Errorf("count %q: %w: %w", s, ErrSyntax, err)
	}
	factor, ok := decimalFactor(suffix)
	if !ok {
		return 0, fmt.Errorf("count %q: %w: write it like 4321, 12.3k or 1.2M", s, ErrSyntax)
	}
	if math.Abs(value*factor) > MostCount {
		return 0, fmt.Errorf("count %q: %w: out of range: at most 1e15", s, ErrSyntax)
	}
	return value * factor, nil
}

// ParsePercent reads a percentage and returns the ratio: "1.8 %" is 0.018. The sign is required,
// because a bare 0.5 is ambiguous.
func ParsePercent(s string) (float64, error) {
	value, suffix, err := splitNumber(s)
	if err != nil {
		return 0, fmt.Errorf("percentage %q: %w: %w", s, ErrSyntax, err)
	}
	if suffix != "%" {
		return 0, fmt.Errorf("percentage %q: %w: write it like 1.5%%", s, ErrSyntax)
	}
	return value / 100, nil
}

// secondsPer returns the length of a unit of time.
func secondsPer(name string) (float64, bool) {
	switch name {
	case "ns":
		return 1e-9, true
	case "µs", "μs", "us": // micro sign, Greek mu, and the ASCII substitute
		return 1e-6, true
	case "ms":
		return 1e-3, true
	case "s":
		return 1, true
	case "m", "min":
		return 60, true
	case "h":
		return 3600, true
	}
	return 0, false
}

var (
	errNoNumber = errors.New("does not start with a number")
	errRange    = errors.New("out of range")
)

// splitNumber splits s into its leading finite decimal number and the unit after it.
//
// It does not use strconv alone, which also accepts hexadecimal floats, "inf" and "nan".
func splitNumber(s string) (float64, string, error) {
	s = strings.TrimSpace(s)
	end, digits := 0, false
	for end < len(s) {
		c := s[end]
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c == '.':
		case (c == '+' || c == '-') && (end == 0 || s[end-1] == 'e' || s[end-1] == 'E'):
		case (c == 'e' || c == 'E') && digits && exponentFollows(s[end+1:]):
		default:
			goto cut
		}
		end++
	}
cut:
	if !digits {
		return 0, "", errNoNumber
	}
	value, err := strconv.ParseFloat(s[:end], 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, "", errRange
	}
	if err != nil {
		return 0, "", errNoNumber
	}
	return value, strings.TrimSpace(s[end:]), nil
}

// exponentFollows distinguishes 1e9 from 1E (an exbi prefix).
func exponentFollows(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// decimalFactor returns 1000^n for the prefix of that power, upper or lower case.
func decimalFactor(prefix string) (float64, bool) {
	factor := 1.0
	for _, known := range decimalPrefixes {
		if strings.EqualFold(prefix, known) {
			return factor, true
		}
		factor *= 1000
	}
	return 0, false
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix) {
		return s[:len(s)-len(suffix)], true
	}
	return s, false
}

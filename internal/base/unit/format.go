package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// unknown is the printed form of NaN.
const unknown = "unknown"

// The prefixes of 1000^0, 1000^1, … and 1024^0, 1024^1, …
var (
	decimalPrefixes = []string{"", "k", "M", "G", "T", "P"}
	binaryPrefixes  = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
)

// String prints r with three significant digits: "941 Mb/s", "1.00 Gb/s".
func (r BitRate) String() string {
	if math.IsNaN(float64(r)) {
		return unknown
	}
	number, prefix := decimal(float64(r))
	return number + " " + prefix + "b/s"
}

// String prints b exactly if that is short ("1500 B", "6 MiB") and with three significant digits
// otherwise ("6.29 MiB").
//
// A number below 10 000 that is not a multiple of 1024 is printed exactly, because every digit of
// an MTU, segment size or window clamp matters.
func (b Bytes) String() string {
	magnitude := math.Abs(float64(b))
	if magnitude < 10_000 && b%Kibibyte != 0 || b == 0 {
		return strconv.FormatInt(int64(b), 10) + " B"
	}
	group := 0
	// 1023.5 would round to 1024 of the smaller unit.
	for magnitude >= 1023.5 && group < len(binaryPrefixes)-1 {
		magnitude /= 1024
		group++
	}
	number := strconv.FormatFloat(magnitude, 'f', decimalsFor(magnitude), 64)
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if b < 0 {
		number = "-" + number
	}
	return number + " " + binaryPrefixes[group] + "B"
}

// RoundBudget rounds a duration to one that a user would type as a budget: up to ten seconds, or
// beyond two minutes up to half a minute.
func RoundBudget(d time.Duration) time.Duration {
	step := 10 * time.Second
	if d > 2*time.Minute {
		step = 30 * time.Second
	}
	return (d + step - 1) / step * step
}

// FormatBudget prints a duration rounded by RoundBudget: "50.0 s", "4 min 30 s".
func FormatBudget(d time.Duration) string { return FormatSeconds(RoundBudget(d).Seconds()) }

// FormatSeconds prints a time in seconds: "840 ns", "1.24 ms", "12.0 s", "2 min 05 s", "3 h 10
// min", "41 d 7 h".
func FormatSeconds(seconds float64) string {
	magnitude := math.Abs(seconds)
	switch {
	case math.IsNaN(seconds):
		return unknown
	case seconds == 0:
		return "0 s"
	case math.IsInf(seconds, 0):
		return strconv.FormatFloat(seconds, 'f', -1, 64) + " s"
	case magnitude >= 1<<53:
		// Beyond the exact integers (and 285 million years) minutes mean nothing.
		return strconv.FormatFloat(seconds, 'g', 3, 64) + " s"
	}
	sign := ""
	if seconds < 0 {
		sign = "-"
	}
	// The comparisons use the printed value of the next smaller unit, so that no value prints as
	// "1000 ms" or "60.0 s".
	switch {
	case magnitude >= 100*3600-30: // from here on, whole hours are within half a per cent
		hours := int64(math.Round(magnitude / 3600))
		return fmt.Sprintf("%s%d d %d h", sign, hours/24, hours%24)
	case magnitude >= 3599.5:
		minutes := int64(math.Round(magnitude / 60))
		return fmt.Sprintf("%s%d h %02d min", sign, minutes/60, minutes%60)
	case magnitude >= 59.95:
		whole := int64(math.Round(magnitude))
		return fmt.Sprintf("%s%d min %02d s", sign, whole/60, whole%60)
	case magnitude >= 0.9995:
		return sign + threeDigits(magnitude) + " s"
	case magnitude >= 0.9995e-3:
		return sign + threeDigits(magnitude*1e3) + " ms"
	case magnitude >= 0.9995e-6:
		return sign + threeDigits(magnitude*1e6) + " µs"
	default:
		return sign + threeDigits(magnitude*1e9) + " ns"
	}
}

// FormatCount prints a count: whole numbers below 10 000 exactly ("4321"), others with three
// significant digits and a decimal prefix ("12.3 k", "1.24 M").
func FormatCount(count float64) string {
	magnitude := math.Abs(count)
	switch {
	case math.IsNaN(count):
		return unknown
	case magnitude < 9999.5 && (count == math.Trunc(count) || magnitude >= 999.5):
		return strconv.FormatFloat(math.Round(count)+0, 'f', 0, 64) // +0 turns -0 into 0
	}
	number, prefix := decimal(count)
	if prefix == "" {
		return number
	}
	return number + " " + prefix
}

// FormatPercent prints a ratio as a percentage: 0.018 is "1.80 %", 0.5 is "50.0 %". What is not all
// never prints as all: 0.9997 is "99.97 %", as many digits as that takes.
//
// A blank precedes the sign, as in the SI brochure.
func FormatPercent(ratio float64) string {
	switch percent := ratio * 100; {
	case math.IsNaN(ratio):
		return unknown
	case percent == 0:
		return "0 %"
	case math.Abs(percent) < 0.01:
		return strconv.FormatFloat(percent, 'g', 3, 64) + " %"
	case percent >= 99.95 && percent < 100-1e-10: // closer ones are a hundred with an error of rounding
		return nearlyAll(percent) + " %"
	default:
		return threeDigits(percent) + " %"
	}
}

// nearlyAll prints a percentage just below a hundred with as many decimals as show that, at most
// eight: 99.97, 99.9996.
func nearlyAll(percent float64) string {
	const most = 8
	for decimals := 2; decimals < most; decimals++ {
		if text := strconv.FormatFloat(percent, 'f', decimals, 64); text[0] == '9' {
			return text
		}
	}
	return "99." + strings.Repeat("9", most)
}

// FormatDifference prints a relative difference with its sign and a fixed number of decimals: 0.032
// with one is "+3.2 %". What rounds to nothing has no sign.
func FormatDifference(ratio float64, decimals int) string {
	text := strconv.FormatFloat(100*ratio, 'f', decimals, 64)
	switch {
	case math.IsNaN(ratio):
		return unknown
	case strings.Trim(text, "-0.") == "":
		text = strings.TrimPrefix(text, "-")
	case ratio > 0:
		text = "+" + text
	}
	return text + " %"
}

// decimal splits x into a number of three significant digits and its decimal prefix.
func decimal(x float64) (number, prefix string) {
	if x == 0 {
		return "0", ""
	}
	if math.IsInf(x, 0) {
		return strconv.FormatFloat(x, 'f', -1, 64), ""
	}
	// Round first and choose the prefix afterwards: 999.7 M is 1.00 G, not 1000 M.
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	if err != nil {
		rounded = x // rounding up overflowed float64; the digits no longer matter
	}
	group := 0
	for scaled := math.Abs(rounded); scaled >= 1000 && group < len(decimalPrefixes)-1; group++ {
		scaled /= 1000
		rounded /= 1000
	}
	return threeDigits(rounded), decimalPrefixes[group]
}

// threeDigits prints x with three significant digits, or with all digits before the point if it has
// more.
//
// The g form is for values that no quantity should have, but a printed number must never be wrong.
func threeDigits(x float64) string {
	if math.Abs(x) < 0.01 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', decimalsFor(x), 64)
}

// decimalsFor returns how many digits after the point yield three significant ones.
func decimalsFor(x float64) int {
	switch magnitude := math.Abs(x); {
	case magnitude >= 99.95:
		return 0
	case magnitude >= 9.995:
		return 1
	case magnitude >= 0.9995:
		return 2
	case magnitude >= 0.09995:
		return 3
	default:
		return 4
	}
}

// Counted returns a number with its noun in words: 1 queue, 4 queues. The plural is that of most
// nouns.
func Counted[N int | int64 | uint64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

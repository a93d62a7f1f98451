package words

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// beyond is where numbers are no longer plausible quantities. They are printed with an exponent,
// not with the three hundred digits that a forged or broken document can contain.
const beyond = 1e18

// Times returns an effect as a factor: ×3.91. Zero is not known and gives an empty text. An effect
// from nothing or to nothing is no factor; Times returns words for it.
//
// Factors below two have a third decimal: a tenth of a per cent, well below the one per cent that a
// change must prove to be kept.
func Times(x float64) string {
	switch {
	case x == 0:
		return ""
	case stats.FromNothing(x):
		return "from nothing"
	case stats.ToNothing(x):
		return "to nothing"
	case x < 0.01:
		return fmt.Sprintf("×%.2g", x) // three decimals would leave nothing of it
	case x < 2:
		return fmt.Sprintf("×%.3f", x)
	case x < 100:
		return fmt.Sprintf("×%.2f", x)
	case x >= beyond:
		return fmt.Sprintf("×%.3g", x)
	}
	return "×" + unit.FormatCount(x)
}

// Interval returns the two ends of an effect. An end that is not known yet is an ellipsis; without
// both ends the text is empty. Where one end stands for nothing, the other one bounds the effect.
func Interval(e tune.Effect) string {
	switch low, high := stats.ToNothing(e.Low), stats.FromNothing(e.High); {
	case e.Low == 0 && e.High == 0, stats.FromNothing(e.Low), stats.ToNothing(e.High), low && high:
		return ""
	case low && e.High != 0 && e.High < 1:
		return Times(e.High) + " or less"
	case high && e.Low > 1:
		return Times(e.Low) + " or more"
	}
	side := func(x float64) string {
		if x == 0 || stats.FromNothing(x) || stats.ToNothing(x) {
			return "…"
		}
		return Times(x)
	}
	return side(e.Low) + " to " + side(e.High)
}

// Evidence returns the value of a piece of evidence with its unit.
//
// Numbers from JSON are always float64. An unknown unit follows the number unchanged.
func Evidence(e evidence.Evidence) string {
	switch v := e.Value.(type) {
	case nil:
		return ""
	case float64:
		if math.Abs(v) >= beyond {
			return strings.TrimSpace(fmt.Sprintf("%.3g %s", v, strings.ReplaceAll(e.Unit, "_", " ")))
		}
		switch e.Unit {
		case "bits_per_second":
			return unit.BitRate(v).String()
		case "bytes":
			return unit.Bytes(v).String()
		case "seconds":
			return unit.FormatSeconds(v)
		case "ratio":
			return unit.FormatPercent(v)
		}
		return strings.TrimSpace(unit.FormatCount(v) + " " + e.Unit)
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	return strings.TrimSpace(fmt.Sprint(e.Value) + " " + e.Unit)
}

// Value returns the value of a knob; an empty one gets quotes, so that a table shows it.
func Value(v knob.Value) string {
	if v == "" {
		return `""`
	}
	return string(v)
}

// Count returns a number; empty for 0.
func Count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// Percent returns a ratio as a whole percentage. What is not all is never 100 %, and what is there
// is never 0 %.
func Percent(ratio float64) string {
	switch percent := math.Round(100 * ratio); {
	case percent >= 100 && ratio < 1:
		return ">99 %"
	case percent <= 0 && ratio > 0:
		return "<1 %"
	default:
		return fmt.Sprintf("%.0f %%", percent+0) // +0 turns -0 into 0
	}
}

// Budget returns a time in seconds as flags take it: 4m30s, 5m.
func Budget(seconds float64) string {
	text := time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

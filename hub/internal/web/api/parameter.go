package api

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
)

// Times are those that RFC 3339 can write: the years 1 to 9999. Their milliseconds, and the
// differences of these, fit into 64 bits.
var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// moment parses a time: Unix seconds with a fraction, or RFC 3339.
func moment(form url.Values, name string, otherwise time.Time) (time.Time, error) {
	s := form.Get(name)
	if s == "" {
		if otherwise.IsZero() {
			return time.Time{}, invalid(name, errors.New(`cannot parse "" to a valid timestamp`))
		}
		return otherwise, nil
	}
	t, err := parseMoment(s)
	if err != nil {
		return time.Time{}, invalid(name, err)
	}
	return t, nil
}

func parseMoment(s string) (time.Time, error) {
	cannot := fmt.Errorf("cannot parse %q to a valid timestamp", s)
	var t time.Time
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if !(f >= float64(earliest.Unix()) && f <= float64(latest.Unix())) {
			return time.Time{}, cannot
		}
		whole, part := math.Modf(f)
		part = math.Round(part*1000) / 1000
		t = time.Unix(int64(whole), int64(part*float64(time.Second))).UTC()
	} else if t, err = time.Parse(time.RFC3339Nano, s); err != nil {
		return time.Time{}, cannot
	}
	if t.Before(earliest) || t.After(latest) {
		return time.Time{}, cannot
	}
	return t, nil
}

// span parses a duration: seconds with a fraction, or in PromQL's form.
func span(form url.Values, name string) (time.Duration, error) {
	s := form.Get(name)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		ns := f * float64(time.Second)
		if math.IsNaN(ns) || ns >= math.MaxInt64 || ns <= math.MinInt64 {
			return 0, invalid(name, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", s))
		}
		return time.Duration(ns), nil
	}
	if d, err := model.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	return 0, invalid(name, fmt.Errorf("cannot parse %q to a valid duration", s))
}

// count parses a limit; 0: none.
func count(form url.Values, name string) (int, error) {
	s := form.Get(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, invalid(name, err)
	}
	if n < 0 {
		return 0, invalid(name, errors.New("limit must be non-negative"))
	}
	return n, nil
}

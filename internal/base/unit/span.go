package unit

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Span is a duration in a file written by people: "15s", "5m", "12h", "7d", "2w". A number without
// a unit is seconds.
//
// It is a separate type because the encoders of JSON and YAML do not support days, and that of JSON
// supports no units at all.
type Span time.Duration

// ParseSpan reads a Span: everything that ParseSeconds accepts, and whole or fractional days ("7d")
// and weeks ("2w").
func ParseSpan(s string) (Span, error) {
	seconds, err := ParseSeconds(s)
	if value, suffix, numberErr := splitNumber(s); err != nil && numberErr == nil {
		switch strings.TrimSpace(suffix) {
		case "d":
			seconds, err = value*86400, nil
		case "w":
			seconds, err = value*7*86400, nil
		}
	}
	if err != nil {
		return 0, err
	}
	if math.Abs(seconds) >= MostSeconds {
		return 0, fmt.Errorf("time %q: %w: %w", s, ErrSyntax, ErrLong)
	}
	return Span(seconds * 1e9), nil
}

// Duration converts s to a time.Duration.
func (s Span) Duration() time.Duration { return time.Duration(s) }

// String returns s in a form that ParseSpan reads.
func (s Span) String() string {
	switch d := time.Duration(s); {
	case d != 0 && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d != 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d != 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return d.String()
	}
}

// UnmarshalText reads a Span from JSON, YAML and flags.
func (s *Span) UnmarshalText(text []byte) error {
	v, err := ParseSpan(string(text))
	if err == nil {
		*s = v
	}
	return err
}

// MarshalText writes a Span as UnmarshalText reads it.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

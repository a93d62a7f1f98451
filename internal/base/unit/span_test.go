package unit

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
		back string
	}{
		{"15s", 15 * time.Second, "15s"},
		{"90", 90 * time.Second, "1m30s"},
		{"5m", 5 * time.Minute, "5m"},
		{"1m30s", 90 * time.Second, "1m30s"},
		{"36h", 36 * time.Hour, "36h"},
		{"7d", 168 * time.Hour, "7d"},
		{"1.5 d", 36 * time.Hour, "36h"},
		{"2w", 336 * time.Hour, "14d"},
		{"250ms", 250 * time.Millisecond, "250ms"},
		{"0", 0, "0s"},
		{"-5m", -5 * time.Minute, "-5m"},
	} {
		var s Span
		if err := json.Unmarshal([]byte(`"`+c.text+`"`), &s); err != nil || s.Duration() != c.want ||
			s.String() != c.back {
			t.Errorf("%q: %v (%v), %v; want %v, %q", c.text, s.Duration(), s, err, c.want, c.back)
		}
		out, err := json.Marshal(s)
		var again Span
		if err != nil || json.Unmarshal(out, &again) != nil || again != s {
			t.Errorf("%q: written %s, read again %v", c.text, out, again)
		}
	}
	for _, text := range []string{"", "5 apples", "d", "m5", "1e300s", "20000000w"} {
		if _, err := ParseSpan(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want a syntax error", text, err)
		}
	}
}

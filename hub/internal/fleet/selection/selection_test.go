package selection

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// host is a host of a test: values by key.
type host struct {
	values map[string][]string
	knobs  map[string]string
	seen   time.Time
}

func (h host) Values(key string) []string { return h.values[key] }

func (h host) Knob(name string) (string, bool) { v, ok := h.knobs[name]; return v, ok }

func (h host) Seen() time.Time { return h.seen }

var now = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

var web = host{
	values: map[string][]string{"host": {"web12.ams.example"}, "class": {"mlx5-6.12-100g-a1b2"}, "site": {"ams"},
		"group": {"web", "edge"}, "finding": {"rx-ring-overrun", "cpu-saturated"}, "drift": {"no"}, "version": {"1.10.2"},
		"kernel": {"6.12.8-amd64"}, "label.owner": {"Jo Smith"}, "differs": {"3"}},
	knobs: map[string]string{"net.ipv4.tcp_rmem": "4096\t131072\t6291456"},
	seen:  now.Add(-11 * time.Minute),
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"  ", true},
		{"web*", true},
		{"web12", false},
		{"WEB12.AMS.example", true},
		{"host:web?2.*", true},
		{"-host:db*", true},
		{"-host:web*", false},
		{"class:mlx5-6.12", true},
		{"class:mlx5", true},
		{"class:mlx", false},
		{"class:mlx5-6.1", false},
		{"class:mlx5-6.12-100g-a1b2", true},
		{"site:ams finding:rx-ring-overrun drift:no seen>10m -host:db*", true},
		{"site:ams drift:yes", false},
		{"site:fra,ams", true},
		{"site:fra", false},
		{"-site:fra,ams", false},
		{"group:edge group:web", true},
		{"rack:r1", false},
		{"-rack:r1", true},
		{"seen<10m", false},
		{"seen>1d", false},
		{"seen<=660s", true},
		{"seen>=11m", true},
		{"seen>11m", false},
		{"version<1.4", false},
		{"version>1.4", true},
		{"version>=1.10.2", true},
		{"version:1.10.2", true},
		{"kernel<6.13", true},
		{"kernel:6.12*", true},
		{"differs>2", true},
		{"differs>3", false},
		{`label.owner:"jo smith"`, true},
		{`label.owner:"jo *"`, false},
		{`label.owner:jo*`, true},
		{`knob:net.ipv4.tcp_rmem="4096 131072 6291456"`, true},
		{`knob:net.ipv4.tcp_rmem!="4096 131072 6291456"`, false},
		{`knob:net.ipv4.tcp_rmem!=default`, true},
		{`knob:net.core.rmem_max=1`, false},
		{`-knob:net.core.rmem_max=1`, true},
	} {
		s, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := s.Match(web, now); got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
	never := host{}
	for text, want := range map[string]bool{"seen>1d": true, "seen<1d": false, "-seen<1d": true} {
		if s, _ := Parse(text); s.Match(never, now) != want {
			t.Errorf("%q of a host never seen: %v", text, !want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"hots:db*":                "no key",
		"-hots:db*":               "no key",
		"seen:10m":                "seen>10m",
		"seen>ten":                "duration",
		"site>ams":                "no order",
		"version>x":               "not a version",
		"version>1,2":             "one value",
		"differs>many":            "not a number",
		"site:":                   "empty",
		"site:a,,b":               "empty",
		`site:"ams`:               "no end",
		"drift:maybe":             "drift:yes",
		"knob:x":                  "knob:NAME=VALUE",
		"knob:=1":                 "knob:NAME=VALUE",
		"label.:x":                "no key",
		strings.Repeat("a ", 65):  "terms",
		strings.Repeat("a", 5000): "bytes",
		"site:" + strings.Repeat("a,", 300) + "a": "values",
	} {
		_, err := Parse(text)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// FuzzParse: no text makes the parser or a match fail, and a negated term holds exactly where the
// term does not.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`class:mlx5-6.12 site:ams finding:rx-ring-overrun drift:yes seen>10m version<1.4 ` +
		`knob:net.ipv4.tcp_rmem!=default -host:db*`, `"a b",c`, `host:[a-`, `-"x\"y"`, `knob:a="*"`, "kernel>=6.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		got := s.Match(web, now)
		if len(s.terms) == 1 {
			s.terms[0].not = !s.terms[0].not
			if s.Match(web, now) == got {
				t.Errorf("%q and its negation both give %v", text, got)
			}
		}
	})
}

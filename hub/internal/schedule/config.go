package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic"
)

// Bounds of what can be configured.
const (
	MaxSchedules = 256              // of one host
	minEvery     = 10 * time.Second // a shorter interval is a load test
	maxEvery     = 31 * 24 * time.Hour
	maxTimeLimit = 15 * time.Minute // of one run, from connecting to the last result
	maxName      = 64               // characters
)

// Config is one measurement that runs at intervals. Empty fields have defaults.
type Config struct {
	// letters, digits, '.', '_' and '-'; names its events
	Name string `json:"name" yaml:"name"`
	// as `linerate measure` takes it, and icmp://HOST
	Target string `json:"target" yaml:"target"`
	// holds the key that `linerate serve` printed; read before every run
	KeyFile string `json:"key_file,omitempty" yaml:"key_file,omitempty"`

	// stream, rr, crr, udp, ping, mtu, load or suite; default suite, for icmp:// ping
	Test string `json:"test,omitempty" yaml:"test,omitempty"`
	// up, down or bidir, for stream and udp; default up
	Direction string `json:"direction,omitempty" yaml:"direction,omitempty"`
	Parallel  int    `json:"parallel,omitempty" yaml:"parallel,omitempty"` // connections at the same time; default 1
	// of each test; default 5s, 1s to 2m; at most 3s in a suite
	Duration unit.Span `json:"duration,omitempty" yaml:"duration,omitempty"`

	Every unit.Span `json:"every" yaml:"every"` // 10s to 31d
	// Jitter is the longest random delay of a start, so that many hosts do not measure one target
	// at once; at most half of every. Default a tenth.
	Jitter *unit.Span `json:"jitter,omitempty" yaml:"jitter,omitempty"`

	// stream, udp and suite: payload bits per second in each direction, as in 50M; default
	// unlimited, for udp 10M
	Rate string `json:"rate,omitempty" yaml:"rate,omitempty"`
	// stream and udp: payload of one run in all directions, as in 200M
	Bytes string `json:"bytes,omitempty" yaml:"bytes,omitempty"`
	// payload of all runs in any 24 hours; needs rate or bytes
	BytesPerDay string `json:"bytes_per_day,omitempty" yaml:"bytes_per_day,omitempty"`
	// of one run; default 30s plus three times its tests, at most 15m
	TimeLimit unit.Span `json:"time_limit,omitempty" yaml:"time_limit,omitempty"`

	// no start while the interface carries more than this in either direction, as in 500M
	UnlessBusyAbove string `json:"unless_busy_above,omitempty" yaml:"unless_busy_above,omitempty"`
	// for unless_busy_above; default that of the route to the target
	Interface string `json:"interface,omitempty" yaml:"interface,omitempty"`
}

// amounts are the values of a Config's texts; zero is unset.
type amounts struct {
	rate, busy         float64 // bits per second
	bytes, bytesPerDay int64
}

// Validate returns what is wrong with a measurement, as one sentence with its name and what to
// write instead.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

// Validate returns what is wrong with the measurements of one host, each of which may be valid
// alone. It is the check of a configuration.
func Validate(configs []Config) error {
	if len(configs) > MaxSchedules {
		return fmt.Errorf("schedules: %d are more than %d: give each hub fewer targets", len(configs), MaxSchedules)
	}
	names, paths := make(map[string]bool), make(map[[3]string]string)
	var all []error
	for i, c := range configs {
		if c.Name == "" {
			all = append(all, fmt.Errorf(
				"schedule %d of the list: no name: write name: and a unique word", i+1))
			continue
		}
		if err := c.Validate(); err != nil {
			all = append(all, err)
			continue
		}
		if names[c.Name] {
			all = append(all, fmt.Errorf("schedule %s: named twice: give each its own name", c.Name))
		}
		names[c.Name] = true
		// Both would write into the same series.
		path := [3]string{c.Target, string(c.test()), string(c.direction())}
		if other, taken := paths[path]; taken {
			all = append(all, fmt.Errorf(
				"schedule %s: %s measures the same target by the same test already: change one of them, or "+
					"leave it out", c.Name, other))
		}
		paths[path] = c.Name
	}
	return errors.Join(all...)
}

// check is Validate that returns the numbers.
func (c Config) check() (amounts, error) {
	var a amounts
	bad := func(format string, args ...any) (amounts, error) {
		return a, fmt.Errorf("schedule %s: %s", cmp.Or(c.Name, "without a name"), fmt.Sprintf(format, args...))
	}
	if !goodName(c.Name) {
		return bad("name %q: write 1 to %d letters, digits, '.', '_' or '-'", c.Name, maxName)
	}
	if c.Target == "" {
		return bad("no target: write target: HOST, as `linerate measure` takes it")
	}
	if err := checkTarget(c); err != nil {
		return bad("%v", err)
	}
	for _, f := range []struct {
		key, text string
		rate      *float64
		bytes     *int64
	}{
		{"rate", c.Rate, &a.rate, nil}, {"unless_busy_above", c.UnlessBusyAbove, &a.busy, nil},
		{"bytes", c.Bytes, nil, &a.bytes}, {"bytes_per_day", c.BytesPerDay, nil, &a.bytesPerDay},
	} {
		if problem := amount(f.text, f.rate, f.bytes); problem != "" {
			return bad("%s: %s", f.key, problem)
		}
	}
	every, jitter, duration, limit := c.Every.Duration(), c.jitter(), c.Duration.Duration(), c.TimeLimit.Duration()
	bulk := c.test() == string(traffic.Stream) || c.test() == string(traffic.UDP)
	switch {
	case !slices.Contains(tests, c.test()):
		return bad("test %q: write one of %s", c.Test, strings.Join(tests, ", "))
	case c.Direction != "" && !bulk:
		return bad("direction: %s has none, leave it out; stream and udp have", c.test())
	case !slices.Contains([]string{"", "up", "down", "bidir"}, c.Direction):
		return bad("direction %q: write up, down or bidir", c.Direction)
	case every == 0:
		return bad("no interval: write every: 15m, or another time between two runs")
	case every < minEvery || every > maxEvery:
		return bad("every %v: write %v to %v", c.Every, unit.Span(minEvery), unit.Span(maxEvery))
	case jitter < 0 || jitter > every/2:
		return bad("jitter %v: write no more than half of every, which is %v", unit.Span(jitter), unit.Span(every/2))
	case duration != 0 && (duration < time.Second || duration > 2*time.Minute):
		return bad("duration %v: write 1s to 2m", c.Duration)
	case limit != 0 && (limit < time.Second || limit > maxTimeLimit):
		return bad("time_limit %v: write 1s to %v", c.TimeLimit, unit.Span(maxTimeLimit))
	case a.rate > 0 && !bulk && c.test() != suite:
		return bad("rate: %s sends no bulk, leave it out", c.test())
	case a.bytes > 0 && !bulk:
		return bad("bytes: only stream and udp can be stopped at an amount, leave it out or write test: stream")
	case a.bytesPerDay > 0 && !bulk && c.test() != suite:
		return bad("bytes_per_day: %s has no bound of its own, leave it out; stream, udp and suite have", c.test())
	case a.bytesPerDay > 0 && a.bytes == 0 && a.rate == 0:
		return bad("bytes_per_day: needs bytes or rate too, so that it is known before a run what it may cost")
	case a.bytesPerDay > 0 && a.bytesPerDay < c.worst(a):
		return bad("bytes_per_day: one run may cost %v, which is more than %v: write a lower rate, fewer bytes "+
			"or a shorter duration", unit.Bytes(c.worst(a)), unit.Bytes(a.bytesPerDay))
	case c.Interface != "" && a.busy == 0:
		return bad("interface: needs unless_busy_above: write that too, or leave interface out")
	case len(c.Interface) > 15 || strings.ContainsAny(c.Interface, "/ \x00") || c.Interface == "." ||
		c.Interface == "..":
		return bad("interface %q: not the name of an interface", c.Interface)
	}
	// The tests report what else is invalid.
	for _, s := range c.specs(a) {
		if _, err := s.Normalize(); err != nil {
			return bad("%s", strings.TrimPrefix(err.Error(), traffic.ErrBadSpec.Error()+": "))
		}
	}
	return a, nil
}

// amount parses one text into the wanted number, and returns what is wrong with it.
func amount(text string, rate *float64, bytes *int64) string {
	if text == "" {
		return ""
	}
	if rate != nil {
		r, err := unit.ParseBitRate(text)
		if err == nil && r > 0 {
			*rate = float64(r)
			return ""
		}
		return fmt.Sprintf("%q is not a rate: write bits per second, as in 50M or 1.5G", text)
	}
	b, err := unit.ParseBytes(text)
	if err == nil && b > 0 {
		*bytes = int64(b)
		return ""
	}
	return fmt.Sprintf("%q is not an amount: write bytes, as in 200M or 2Gi", text)
}

func goodName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '.' && name[0] != '-' &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
				strings.ContainsRune("._-", r))
		})
}

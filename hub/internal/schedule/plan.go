package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/traffic"
)

// suite is the test that consists of several.
const suite = "suite"

// tests are the names of the tests.
var tests = []string{suite, string(traffic.Stream), string(traffic.RR), string(traffic.CRR), string(traffic.UDP),
	string(traffic.Ping), string(traffic.MTU), string(traffic.Load)}

const (
	defaultDuration = 5 * time.Second
	longestOfSuite  = 3 * time.Second
	// rampTime is cut from the front of a stream with a rate: it reaches the rate at once, so it
	// needs no search for a steady state.
	rampTime = time.Second
	// defaultDatagramRate is what any usable path carries, as in the suite of `linerate measure`.
	defaultDatagramRate = 10e6
	// smallTest is more than a test without bulk costs, and than the control channel does.
	smallTest = 1 << 20
)

// test returns the name of the test.
func (c Config) test() string {
	if scheme, _, _ := strings.Cut(c.Target, "://"); scheme == reach.Echo {
		return cmp.Or(c.Test, string(traffic.Ping))
	}
	return cmp.Or(c.Test, suite)
}

// direction returns the direction of the whole run.
func (c Config) direction() string {
	if c.test() == suite || c.test() == string(traffic.Load) {
		return string(traffic.Bidir)
	}
	return cmp.Or(c.Direction, string(traffic.Up))
}

// jitter returns the longest delay of a run within its slot.
func (c Config) jitter() time.Duration {
	if c.Jitter == nil {
		return c.Every.Duration() / 10
	}
	return c.Jitter.Duration()
}

// limit returns how long one run may take.
func (c Config) limit(a amounts) time.Duration {
	if c.TimeLimit != 0 {
		return c.TimeLimit.Duration()
	}
	var all time.Duration
	for _, s := range c.specs(a) {
		all += s.Duration + warmUp(s)
	}
	return min(30*time.Second+3*all, maxTimeLimit)
}

// specs returns the tests of one run. A value of 0 in them is the test's default.
func (c Config) specs(a amounts) []traffic.Spec {
	streams := max(c.Parallel, 1)
	duration := cmp.Or(c.Duration.Duration(), defaultDuration)
	if c.test() != suite {
		return []traffic.Spec{c.single(a, streams, duration)}
	}
	duration = min(duration, longestOfSuite)
	all := loop.Suite(duration, 0, streams)
	if scheme, _, ok := reach.Foreign(c.Target); ok {
		all = reach.Suite(scheme, streams, duration, 0)
	}
	if a.rate == 0 {
		return all
	}
	kept := all[:0]
	for _, s := range all {
		switch {
		case s.Test == traffic.Load:
			continue // fills the path, which a rate must prevent
		case s.Bulk() && (s.RateBitsPerSec == 0 || s.RateBitsPerSec > a.rate):
			s.RateBitsPerSec = a.rate
		}
		if s.Test == traffic.Stream && s.WarmUp < 0 {
			s.WarmUp = rampTime
		}
		kept = append(kept, s)
	}
	return kept
}

// single returns the specification of one test.
func (c Config) single(a amounts, streams int, duration time.Duration) traffic.Spec {
	s := traffic.Spec{Test: traffic.Test(c.test()), Streams: streams, Duration: duration}
	switch s.Test {
	case traffic.Stream:
		s.WarmUp = -1
		if a.rate > 0 {
			s.WarmUp = rampTime
		}
	case traffic.RR, traffic.CRR:
		s.WarmUp = -1
	case traffic.Ping:
		s.Gap = 100 * time.Millisecond // ten a second load no path
	case traffic.UDP:
		a.rate = cmp.Or(a.rate, defaultDatagramRate)
	}
	if s.Bulk() {
		s.Direction = traffic.Direction(c.direction())
		s.RateBitsPerSec = a.rate
		if a.bytes > 0 {
			s.Bytes, s.WarmUp = a.bytes/ways(s), 0
		}
	}
	return s
}

// ways returns the number of directions that carry bulk.
func ways(s traffic.Spec) int64 {
	if s.Direction == traffic.Bidir {
		return 2
	}
	return 1
}

// warmUp returns how long the part before the measured one may last.
func warmUp(s traffic.Spec) time.Duration {
	if s.WarmUp < 0 {
		return s.SteadyBound()
	}
	return s.WarmUp
}

// worst returns the largest payload that one run costs, if it is known before the start: every part
// of the run has a rate or an amount. It includes what the kernel may still send of a stream after
// its time.
func (c Config) worst(a amounts) int64 {
	sum := int64(0)
	for _, s := range c.specs(a) {
		switch {
		case !s.Bulk():
			sum += smallTest
		case s.Bytes > 0:
			sum += s.Bytes * ways(s)
		default:
			seconds := (s.Duration + warmUp(s)).Seconds() + 1 // start and end are not measured, but sent
			sum += int64(s.RateBitsPerSec/8*seconds*1.05) * ways(s)
		}
	}
	return sum
}

// checkTarget returns what is wrong with a target and the keys that belong to it.
func checkTarget(c Config) error {
	if err := reach.Check(c.Target); err != nil {
		return err
	}
	scheme, _, has := strings.Cut(c.Target, "://")
	switch {
	case !has && c.KeyFile == "":
		return errors.New("no key: write key_file: and the file with the key that `linerate serve` printed on " +
			"the target")
	case has && c.KeyFile != "":
		return fmt.Errorf("key_file: %s:// needs no key: leave key_file out", scheme)
	}
	return nil
}

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/progress"
	"github.com/linerate/linerate/internal/traffic"
)

// TestSuiteKeepsWhatItHas checks that a test of the suite that cannot run takes nothing from those that did.
func TestSuiteKeepsWhatItHas(t *testing.T) {
	specs := []traffic.Spec{{Test: traffic.Ping, Direction: traffic.Up}, {Test: traffic.Stream, Direction: traffic.Up}, {Test: traffic.Stream, Direction: traffic.Down}}
	refused := fmt.Errorf("%w: too fast", traffic.ErrRefused)
	silent := fmt.Errorf("ping: %w", traffic.ErrNoAnswer)
	gone := fmt.Errorf("stream: %w", traffic.ErrPeerGone)
	for _, tc := range []struct {
		name        string
		specs       []traffic.Spec
		errs        []error // of one test after the other; nil: it has a result
		wantResults int
		wantMissing int
		wantErr     error
	}{
		{"all well", specs, []error{nil, nil, nil}, 3, 0, nil},
		{"one without an answer", specs, []error{silent, nil, nil}, 2, 1, nil},
		{"one refused", specs, []error{nil, refused, nil}, 2, 1, nil},
		{"all refused", specs, []error{refused, refused, refused}, 0, 3, traffic.ErrRefused},
		{"broken off at the second", specs, []error{nil, gone}, 1, 0, traffic.ErrPeerGone},
		{"broken off at the first", specs, []error{gone}, 0, 0, traffic.ErrPeerGone},
		{"a single one refused", specs[:1], []error{refused}, 0, 0, traffic.ErrRefused},
		{"a single one without an answer", specs[:1], []error{silent}, 0, 0, traffic.ErrNoAnswer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := 0
			results, missing, err := measureAll(tc.specs, func(s traffic.Spec) (*traffic.Result, error) {
				n++
				return &traffic.Result{Test: s.Test}, tc.errs[n-1]
			})
			if len(results) != tc.wantResults || len(missing) != tc.wantMissing || !errors.Is(err, tc.wantErr) || n != len(tc.errs) {
				t.Errorf("%d results, missing %q, %v after %d tests", len(results), missing, err, n)
			}
		})
	}
}

// TestInterim checks what a log gets of a test while it runs.
func TestInterim(t *testing.T) {
	var log bytes.Buffer
	p, a := progress.New(&log, progress.Lines), &app{}
	a.interim(p, traffic.Spec{Test: traffic.Load}, traffic.Interval{EndSeconds: 1, RTTSeconds: 0.02})
	a.interim(p, traffic.Spec{Test: traffic.Load}, traffic.Interval{EndSeconds: 2, ProbeRTTSeconds: 0.12, ThroughputBitsPerSec: 9e7})
	a.interim(p, traffic.Spec{Test: traffic.MTU}, traffic.Interval{EndSeconds: 1})
	want := "load    1.0 s  round trip 20.0 ms\nload    2.0 s  round trip 120 ms at 90.0 Mb/s\nmtu    1.0 s\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

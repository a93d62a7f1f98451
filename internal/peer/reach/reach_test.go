package reach

import (
	"errors"
	"fmt"
	"testing"

	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
)

func TestHost(t *testing.T) {
	for _, c := range []struct{ target, want string }{
		{"far", "far"},
		{"192.0.2.7:7071", "192.0.2.7"},
		{"2001:db8::1", "2001:db8::1"},
		{"[2001:db8::1]:7070", "2001:db8::1"},
		{"ssh://root@far:2222", "far"},
		{"iperf3://192.0.2.7:5202", "192.0.2.7"},
		{"icmp://far", "far"},
	} {
		if got, err := Host(c.target); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.target, got, err, c.want)
		}
	}
	for _, target := range []string{"", "icmp://", "icmp://ssh://far", "iperf3://:5201", "ftp://far", "iperf3://me@far",
		"ssh://", "a b"} {
		if got, err := Host(target); !errors.Is(err, peer.ErrTarget) {
			t.Errorf("%q: %q, %v; want %v", target, got, err, peer.ErrTarget)
		}
	}
}

// TestSuiteKeepsWhatItHas checks that a failed test of the suite does not affect the results of the
// others.
func TestSuiteKeepsWhatItHas(t *testing.T) {
	specs := []traffic.Spec{{Test: traffic.Ping, Direction: traffic.Up}, {Test: traffic.Stream, Direction: traffic.Up},
		{Test: traffic.Stream, Direction: traffic.Down}}
	refused := fmt.Errorf("%w: too fast", traffic.ErrRefused)
	silent := fmt.Errorf("ping: %w", traffic.ErrNoAnswer)
	gone := fmt.Errorf("stream: %w", traffic.ErrPeerGone)
	for _, tc := range []struct {
		name        string
		specs       []traffic.Spec
		errs        []error // per test; nil: it has a result
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
			results, missing, err := All(tc.specs, func(s traffic.Spec) (*traffic.Result, error) {
				n++
				return &traffic.Result{Test: s.Test}, tc.errs[n-1]
			})
			if len(results) != tc.wantResults || len(missing) != tc.wantMissing || !errors.Is(err, tc.wantErr) ||
				n != len(tc.errs) {
				t.Errorf("%d results, missing %q, %v after %d tests", len(results), missing, err, n)
			}
		})
	}
}

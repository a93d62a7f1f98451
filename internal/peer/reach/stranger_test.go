package reach

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
)

// speaker stands for a program that has streams and nothing else; it keeps what it is asked for.
func speaker(asked *[]traffic.Spec) traffic.Runner {
	return func(_ context.Context, spec traffic.Spec, _ func(traffic.Interval)) (*traffic.Result, error) {
		*asked = append(*asked, spec)
		if spec.Test != traffic.Stream {
			return nil, traffic.ErrBadSpec
		}
		return &traffic.Result{Test: spec.Test}, nil
	}
}

// TestStrangerIsAskedInItsOwnWords checks that a test reaches another program without the settings
// that only linerate knows.
func TestStrangerIsAskedInItsOwnWords(t *testing.T) {
	var asked []traffic.Spec
	s := Stranger{Host: "no-host.invalid", Speak: speaker(&asked)}
	spec := traffic.Spec{Test: traffic.Stream, SendMethod: "copy", ReceiveMethod: "copy", WarmUp: time.Second,
		Duration: time.Second, ProbeGap: 50 * time.Millisecond}
	if r, err := s.Run(t.Context(), spec, nil); err != nil || r.Test != traffic.Stream {
		t.Errorf("stream: %+v, %v", r, err)
	}
	if len(asked) != 1 || asked[0].SendMethod != "" || asked[0].ReceiveMethod != "" || asked[0].ProbeGap != 0 ||
		asked[0].WarmUp != -1 {
		t.Errorf("the program was asked for %+v", asked)
	}
}

// TestStrangerWithoutAProgram checks that a host that answers echo requests alone refuses a stream,
// and that it reports no configuration.
func TestStrangerWithoutAProgram(t *testing.T) {
	s := Stranger{Host: "no-host.invalid"}
	if _, err := s.Run(t.Context(), traffic.Spec{Test: traffic.Stream}, nil); !errors.Is(err, traffic.ErrBadSpec) {
		t.Errorf("stream: %v, want %v", err, traffic.ErrBadSpec)
	}
	if snapshot, err := s.Snapshot(t.Context()); snapshot != nil || err != nil {
		t.Errorf("snapshot %+v, %v", snapshot, err)
	}
}

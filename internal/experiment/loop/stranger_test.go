package loop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/traffic"
)

// speaker plays a program that has streams and nothing else.
func speaker(asked *[]traffic.Spec) traffic.Runner {
	return func(_ context.Context, spec traffic.Spec, _ func(traffic.Interval)) (*traffic.Result, error) {
		*asked = append(*asked, spec)
		if spec.Test != traffic.Stream {
			return nil, traffic.ErrBadSpec
		}
		r := streamResult(nil)
		r.Direction, r.DurationSeconds, r.LocalAddress, r.RemoteAddress = spec.Direction, 3, "192.0.2.1", "192.0.2.2"
		return r, nil
	}
}

func TestStrangerIsJudgedByWhatThereIs(t *testing.T) {
	var asked []traffic.Spec
	v, err := Diagnose(t.Context(), reach.Stranger{Host: "stranger.invalid", Speak: speaker(&asked)}, DiagnoseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Far != nil || v.Stream() == nil || v.FarAddress != "192.0.2.2" {
		t.Errorf("verdict %+v", v.Case)
	}
	if v.Refused[runPing] == "" || v.Refused[runTransactions] == "" {
		t.Errorf("refused %v", v.Refused)
	}
	if len(v.Blind) == 0 || v.Blind[0].What != "the far host" {
		t.Errorf("blind %+v", v.Blind)
	}
	for _, s := range asked {
		if s.SendMethod != "" || s.ReceiveMethod != "" || s.ProbeGap != 0 || s.WarmUp > 0 {
			t.Errorf("asked for options that other programs do not have: %+v", s)
		}
	}
}

func TestStrangerThatOnlyEchoes(t *testing.T) {
	v, err := Diagnose(t.Context(), reach.Stranger{Host: "127.0.0.1"}, DiagnoseOptions{})
	if errors.Is(err, traffic.ErrNoAnswer) || errors.Is(err, errors.ErrUnsupported) {
		return // this user may not ping here; another test checks that report
	}
	if err != nil {
		t.Fatal(err)
	}
	if v.Stream() != nil || len(v.Runs) != 1 || v.Runs[0].RTT == nil || v.FarAddress != "127.0.0.1" {
		t.Errorf("runs %+v", v.Runs)
	}
	if p, ok := v.Probes[evidence.ProbeMTU]; !ok || p.MTU == nil {
		t.Errorf("no path mtu: %v, refused %v", v.Probes, v.Refused)
	}
	if !strings.Contains(v.Refused[runStream], "nothing but echo requests") || len(v.Findings) == 0 {
		t.Errorf("refused %v, findings %v", v.Refused, v.Findings)
	}
}

func TestStrangerThatIsSilent(t *testing.T) {
	_, err := Diagnose(t.Context(), reach.Stranger{Host: "stranger.invalid"}, DiagnoseOptions{})
	if err == nil || !strings.Contains(err.Error(), "stranger.invalid") {
		t.Errorf("a verdict without an answering host: %v", err)
	}
	// A program that breaks is no peer that merely lacks words.
	broken := func(context.Context, traffic.Spec, func(traffic.Interval)) (*traffic.Result, error) {
		return nil, traffic.ErrPeerGone
	}
	if _, err := Diagnose(t.Context(), reach.Stranger{Host: "stranger.invalid", Speak: broken},
		DiagnoseOptions{}); !errors.Is(err, traffic.ErrPeerGone) {
		t.Errorf("a program that hung up: %v", err)
	}
}

func TestStrangersTakeWholeSeconds(t *testing.T) {
	d := underWay(nil)
	spec, _, err := d.specOf(evidence.ProbeStreams)
	if err != nil {
		t.Fatal(err)
	}
	if took := d.timeOf(spec); took < 3*time.Second {
		t.Errorf("a probe of a stranger takes %v", took)
	}
}

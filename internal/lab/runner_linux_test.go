package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// fake plays the ordinary commands in the worlds of the runner's tests. One knob of its host is
// real: measure computes its figure from tcp_wmem, tune raises tcp_wmem, and undo puts it back.
func fake(args []string) (handled bool, status int) {
	const wmem = "/proc/sys/net/ipv4/tcp_wmem"
	var state string
	for i, a := range args {
		if a == "--state" {
			state = args[i+1]
		}
	}
	saved := filepath.Join(state, "saved")
	switch args[0] {
	case "serve":
		if os.Getenv("LINERATE_KEY") == "" {
			fmt.Fprintln(os.Stderr, "no key")
			return true, 2
		}
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		fmt.Println("listening on nothing")
		<-ended
	case "measure":
		b, _ := os.ReadFile(wmem)
		rate := 9e8
		if strings.HasSuffix(strings.TrimSpace(string(b)), "262144") {
			rate = 1e8
		}
		fmt.Printf(`{"tests":[{"throughput_bits_per_second":%g}]}`, rate)
	case "diagnose":
		fmt.Print(`{"limit":"send-buffer-limited"}`)
	case "tune":
		if os.Getenv("LAB_FAIL") != "" {
			fmt.Fprintln(os.Stderr, "tune: as asked")
			return true, 1
		}
		fmt.Fprintln(os.Stderr, "one step\nanother")
		b, _ := os.ReadFile(wmem)
		_ = os.MkdirAll(state, 0o755)
		_ = os.WriteFile(saved, b, 0o644)
		_ = os.WriteFile(wmem, []byte("4096 16384 8388608"), 0)
		fmt.Print(`{"state":"committed","findings":[{"code":"send-buffer-limited"}],
			"trials":[{"verdict":"kept"},{"verdict":"refused"}],
			"changes":[{"knob":"sysctl:net.ipv4.tcp_wmem","side":"near",
			"from":"4096 16384 262144","to":"4096 16384 8388608"}]}`)
	case "undo":
		if b, err := os.ReadFile(saved); err == nil && os.Getenv("LAB_FORGET") == "" {
			_ = os.WriteFile(wmem, b, 0)
		}
		fmt.Print(`{}`)
	default:
		return false, 0
	}
	return true, 0
}

func TestNetnsRun(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	s, err := scenario.Load("send-buffer")
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	r, err := Run(t.Context(), s, Options{Verdict: true, Removals: 6, Progress: func(e Event) {
		events = append(events, strings.TrimSpace(string(e.Kind)+" "+e.Text))
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Pass || r.Healthy != 9e8 || r.Before != 1e8 || r.After != 9e8 || r.Found != "send-buffer-limited" ||
		r.Proof.Compared < 500 {
		t.Errorf("%+v", r)
	}
	if r.Trials != 1 || len(r.Removals) != 1 || !r.Removals[0].Needed() {
		t.Errorf("%d trials, removed: %+v", r.Trials, r.Removals)
	}
	turned := []Value{{"near", "sysctl:net.ipv4.tcp_wmem", "4096 16384 262144", "4096 16384 8388608",
		"4096 16384 262144"}}
	if d := cmp.Diff(turned, r.Proof.Turned); d != "" {
		t.Error(d)
	}
	want := []string{
		"world pair", "healthy", "world pair", "faults", "before", "diagnose send-buffer-limited", "step one step",
		"step another", "after",
		"removed near sysctl:net.ipv4.tcp_wmem: ×9 with it", "undo", "proof",
	}
	if d := cmp.Diff(want, events); d != "" {
		t.Error(d)
	}
}

func TestNetnsRunThatFails(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	s, err := scenario.Load("send-buffer")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("command", func(t *testing.T) {
		t.Setenv("LAB_FAIL", "1")
		r, err := Run(t.Context(), s, Options{})
		if err != nil || r.Pass || !strings.Contains(r.Reason, "linerate tune: exit status 1: tune: as asked") {
			t.Errorf("%v %+v", err, r)
		}
	})
	t.Run("undo", func(t *testing.T) {
		t.Setenv("LAB_FORGET", "1")
		r, err := Run(t.Context(), s, Options{})
		if err != nil || r.Pass || !strings.Contains(r.Reason, "near sysctl:net.ipv4.tcp_wmem") {
			t.Errorf("%v %+v", err, r)
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		_, err := Run(ctx, s, Options{Progress: func(e Event) {
			if e.Kind == EventFaults {
				stop()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("needs", func(t *testing.T) {
		s := s
		s.Needs.CongestionControl = "no-such-control"
		r, err := Run(t.Context(), s, Options{})
		if err != nil || r.Pass || !r.Skipped || !strings.Contains(r.Reason, "modprobe tcp_no-such-control") {
			t.Errorf("%v %+v", err, r)
		}
	})
}

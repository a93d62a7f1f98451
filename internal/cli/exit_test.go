package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
	"github.com/linerate/linerate/internal/traffic"
)

// TestInterruptedSays checks that the message of an interruption claims only what is known: only a
// tune that reverted everything may say so.
func TestInterruptedSays(t *testing.T) {
	undo := errors.New("take trial changes back: undo near sysctl:net.ipv4.tcp_rmem: input/output error")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{context.Canceled, "interrupted"},
		{tuneError{context.Canceled, false}, "interrupted; trial changes were undone"},
		{tuneError{errors.Join(context.Canceled, undo), true}, "interrupted: context canceled; " + undo.Error()},
	} {
		err := errors.Join(errInterrupted, tc.err)
		if got := oneSentence(err); got != tc.want {
			t.Errorf("%v says %q; want %q", tc.err, got, tc.want)
		}
		if got := exitStatus(err); got != exitInterrupted {
			t.Errorf("%v exits with %d", tc.err, got)
		}
	}
}

// TestBrokenSweepSaysWhatIsLeft checks that a sweep of NFS options that ends early, whatever ended
// it, says that its file could not be removed.
func TestBrokenSweepSaysWhatIsLeft(t *testing.T) {
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	kept := errors.New("remove .linerate-nfs-h-1-2-read: the server does not answer")
	for _, tc := range []struct {
		ctx          context.Context
		err, cleaned error
		want         string
		status       int
	}{
		{interrupted, context.Canceled, nil, "interrupted", exitInterrupted},
		{interrupted, context.Canceled, kept,
			"interrupted: a file of this run is left in the export, and the next run removes it", exitInterrupted},
		{t.Context(), mount.ErrSilent, kept, "nfs tune: " + mount.ErrSilent.Error() +
			"; a file of this run is left in the export, and the next run removes it", exitUnreachable},
		{t.Context(), io.ErrUnexpectedEOF, kept,
			"nfs tune: unexpected EOF; a file of this run is left in the export, and the next run removes it", exitFailed},
	} {
		err := interruption(tc.ctx, nfsBroken(tc.ctx, tc.err, tc.cleaned))
		if got := oneSentence(err); got != tc.want || exitStatus(err) != tc.status {
			t.Errorf("%v, %v: %q with status %d, want %q with %d", tc.err, tc.cleaned, got, exitStatus(err), tc.want, tc.status)
		}
	}
}

// TestTuneErrorKeepsStatus checks that tuneError hides neither the cause nor its exit status.
func TestTuneErrorKeepsStatus(t *testing.T) {
	err := tuneError{fmt.Errorf("measure: %w", usageError{errors.New("no")}), false}
	if got := exitStatus(err); got != exitUsage {
		t.Errorf("exits with %d", got)
	}
}

// TestBadSpecSays checks that the error of an invalid test consists of the reason alone.
func TestBadSpecSays(t *testing.T) {
	_, err := traffic.Spec{Test: traffic.RR, Direction: traffic.Up, Streams: 1, Duration: 1e9, Interval: 1e9,
		RequestBytes: 1, ResponseBytes: 1, RateBitsPerSec: 1e6}.Normalize()
	if got := oneSentence(err); got != "rr runs at no rate" || exitStatus(err) != exitUsage {
		t.Errorf("%v says %q with status %d", err, got, exitStatus(err))
	}
}

// TestTuneFlags checks that a tune refuses values that no segment can use before it opens or
// connects anything.
func TestTuneFlags(t *testing.T) {
	f := tuneFlags{goal: "throughput", allow: "d1", budget: leastBudget, trials: 20}
	for streams, ok := range map[int]bool{0: false, 1: true, traffic.MaxStreams: true, traffic.MaxStreams + 1: false} {
		f.load.parallel = streams
		if _, err := f.options(); (err == nil) != ok {
			t.Errorf("--parallel %d: %v", streams, err)
		}
	}
}

// TestStatusKeepsTheEstimate checks that the status line shows a segment beside the estimate so
// far, not instead of it, and that a step ends both.
func TestStatusKeepsTheEstimate(t *testing.T) {
	var screen bytes.Buffer
	show := tuneProgress(progress.New(&screen, progress.All),
		func(x float64) string { return goalText(goal.Throughput, x) })
	show(tune.Event{Kind: tune.EventEstimate, Text: "pair 1 of 6: ×2"})
	show(tune.Event{Kind: tune.EventSegment, Arm: "B", Pair: 2, Objective: 941e6})
	show(tune.Event{Kind: tune.EventVerdict, Text: "kept"})
	show(tune.Event{Kind: tune.EventSegment, Text: "segment discarded: stolen", Discard: "stolen"})
	want := "· pair 1 of 6: ×2\n· with, pair 2: 941 Mb/s  pair 1 of 6: ×2\nkept\n· segment discarded: stolen  \n"
	if got := screen.String(); got != want {
		t.Errorf("screen got %q, want %q", got, want)
	}
}

// TestDemoBesideOthers: a demo whose rates other programs disturbed has not failed.
func TestDemoBesideOthers(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	for want, r := range map[int]*lab.Result{
		exitPartial: {Disturbed: true, Reason: "not judged: other programs used 1.8 of the 2 CPUs"},
		exitFailed:  {Reason: "a setting differs"},
		exitOK:      {Pass: true},
	} {
		if got := a.finish(a.demoResult(&teller{}, r, "")); got != want {
			t.Errorf("%+v: status %d, want %d", r, got, want)
		}
	}
}

// TestInterruptionIsSaidOnce: the process of a closed world has printed that it was interrupted,
// and the one that started it adds nothing.
func TestInterruptionIsSaidOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var said bytes.Buffer
	a := &app{out: io.Discard, err: &said, json: true}
	if got := a.finish(interruption(ctx, statusError{status: exitInterrupted})); got != exitInterrupted || said.Len() > 0 {
		t.Errorf("status %d, %q", got, &said)
	}
	if got := a.finish(interruption(ctx, statusError{status: exitPartial})); got != exitInterrupted || said.Len() == 0 {
		t.Errorf("a partial result that was interrupted: status %d, %q", got, &said)
	}
}

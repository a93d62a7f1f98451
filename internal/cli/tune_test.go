package cli

import (
	"errors"
	"io"
	"testing"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/wire"
)

func TestTuneStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		o    tune.Outcome
		want int
	}{
		{"came to its end", tune.Outcome{}, exitOK},
		{"out of time", tune.Outcome{Partial: true}, exitPartial},
		{"out of time before a confirmation", tune.Outcome{Partial: true, RolledBack: true}, exitPartial},
		{"differences without a change", tune.Outcome{Unreliable: true}, exitPartial},
		{"a disturbed trial beside a proven one", tune.Outcome{Unreliable: true, Kept: []tune.Change{{}}}, exitOK},
		{"not confirmed", tune.Outcome{RolledBack: true}, exitRolledBack},
		{"out of time, confirmed, and the gain did not last",
			tune.Outcome{Partial: true, RolledBack: true, Soak: &tune.Soak{}}, exitRolledBack},
		{"out of time, and the gain lasts", tune.Outcome{Partial: true, Soak: &tune.Soak{}}, exitPartial},
	} {
		if got := exitStatus(tuneStatus(&c.o)); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}

// TestLostPeer checks that a lost peer is reported in one sentence, unless a trial is left on
// this host: then the whole error stays.
func TestLostPeer(t *testing.T) {
	gone := tuneError{errors.Join(&wire.Error{Op: "receive", Kind: wire.ErrPeerGone,
		Err: errors.New("nothing heard for 8s")}, errors.New("undo far")), true}
	trial := []journal.Change{{State: journal.Undone}, {State: journal.Trial}}
	for _, c := range []struct {
		name string
		err  error
		here []journal.Change
		want string
	}{
		{"all is well here", gone, trial[:1],
			"the connection to the other host is lost (nothing heard for 8s): trials on this host were " +
				"undone, and the guard on that host undoes its own"},
		{"a trial is left here", gone, trial, gone.Error()},
		{"no cause is known", tuneError{&wire.Error{Op: "receive", Kind: wire.ErrPeerGone}, true}, nil,
			"the connection to the other host is lost: trials on this host were undone, and the guard on that " +
				"host undoes its own"},
		{"something else", tuneError{io.ErrUnexpectedEOF, false}, nil, "unexpected EOF"},
	} {
		got := lostPeer(c.err, c.here, new(report.TuneDocument))
		if got.Error() != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
		if gone := errors.Is(c.err, wire.ErrPeerGone); (exitStatus(got) == exitUnreachable) != gone {
			t.Errorf("%s: status %d", c.name, exitStatus(got))
		}
	}
}

package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// TestLiveNamespace changes real knobs in a network namespace of its own. It checks that no process
// outside takes these changes for changes of its own namespace.
func TestLiveNamespace(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	o := journal.Options{
		Dir: filepath.Join(t.TempDir(), "state"), FS: durable.OS(), Backend: live.New(), Catalog: knob.Catalogue(),
		Unguarded: true,
	}
	entered := make(chan error)
	var held *os.File // keeps the namespace alive when no process is in it any more
	go func() {
		defer close(entered)
		runtime.LockOSThread() // Never unlocked: the namespace ends with the thread.
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			held, err = os.Open("/proc/thread-self/ns/net")
		}
		entered <- err
		if err == nil {
			changeLiveKnobs(t, o)
		}
	}()
	err := <-entered
	<-entered // The end.
	if errors.Is(err, unix.EPERM) {
		testenv.Missing(t, testenv.NetNS, err)
	}
	if err != nil || t.Failed() {
		t.Fatalf("network namespace: %v", err)
	}
	// Here, outside, the one trial that was left is none of ours.
	j := open(t, o)
	if outcomes, err := j.Recover(t.Context()); err != nil || len(outcomes) != 0 {
		t.Errorf("recovery outside: %+v, %v", outcomes, err)
	}
	if _, err := j.UndoAll(t.Context()); !errors.Is(err, journal.ErrOtherNamespace) {
		t.Errorf("undo outside: %v", err)
	}
	// With the last hold on it the namespace is destroyed, and every setting in it. A user
	// who may not look at every process cannot know, and recovery reports nothing.
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Readlink("/proc/1/ns/net"); err != nil {
		if outcomes, err := j.Recover(t.Context()); err != nil || len(outcomes) != 0 {
			t.Errorf("recovery without a view of all processes: %+v, %v", outcomes, err)
		}
		return
	}
	var outcomes []journal.Outcome
	for len(outcomes) == 0 && t.Context().Err() == nil { // The thread that was in it may take a moment to end.
		if outcomes, err = j.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range outcomes {
		if o.Change.State != journal.Undone ||
			!strings.HasPrefix(o.Change.Note, "the network namespace is gone, and the setting with it") {
			t.Errorf("%+v", o)
		}
	}
	if again, err := j.UndoAll(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("undo when all is over: %+v, %v", again, err)
	}
}

func changeLiveKnobs(t *testing.T, o journal.Options) {
	j, err := journal.Open(o)
	if err != nil {
		t.Error(err)
		return
	}
	defer j.Close()
	var refused *knob.RangeError
	if _, err := j.Apply(t.Context(), journal.Request{}, settings("link:lo/mtu", "-1")...); !errors.As(err, &refused) {
		t.Errorf("mtu of -1: %v", err)
	}
	// Tabs and spaces are the same to the kernel.
	changes, err := j.Apply(t.Context(), journal.Request{}, settings("sysctl:net.ipv4.tcp_rmem", "4096\t65536  1048576",
		"link:lo/mtu", "9000")...)
	if err != nil || len(changes) != 2 || changes[0].To != "4096 65536 1048576" || changes[1].From != "65536" {
		t.Errorf("%+v, %v", changes, err)
		return
	}
	outcomes, err := j.UndoTrials(t.Context())
	if err != nil || len(outcomes) != 2 || !outcomes[0].Restored || !outcomes[1].Restored {
		t.Errorf("%+v, %v", outcomes, err)
	}
	if v, err := o.Backend.Read(t.Context(), "link:lo/mtu"); err != nil || v != "65536" {
		t.Errorf("mtu %s, %v", v, err)
	}
	if _, err := j.Apply(t.Context(), journal.Request{}, settings("link:lo/mtu", "1500")...); err != nil {
		t.Error(err)
	}
	records, _, err := durable.ReadMarkedLog(o.FS, filepath.Join(o.Dir, "journal.log"))
	if err != nil || !strings.Contains(string(records[0]), `"namespace":"net:[`) ||
		!strings.Contains(string(records[2]), `"device":"1"`) {
		t.Errorf("identities: %q, %v", records, err)
	}
}

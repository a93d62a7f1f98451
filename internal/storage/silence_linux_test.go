package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestAwait: work that goes on is waited for, and work that stands still is left, with the time
// that it stood still.
func TestAwait(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name      string
		beats     time.Duration // the beat goes on until then
		end, quit time.Duration // of the work, and of the context; 0: never
		want      error
		at        time.Duration
	}{
		{"ends", 0, time.Second, 0, failed, time.Second},
		{"slow and alive", time.Hour, time.Hour, 0, failed, time.Hour},
		{"silent from the start", 0, 0, 0, ErrSilent, patience},
		{"silent later", time.Minute, 0, 0, ErrSilent, time.Minute + patience},
		{"ends when asked", time.Hour, 12 * time.Second, 10 * time.Second, failed, 12 * time.Second},
		{"held when asked", time.Minute, 0, time.Minute, ErrSilent, time.Minute + grace},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began, held := time.Now(), make(chan struct{})
				defer close(held)
				if c.quit > 0 {
					time.AfterFunc(c.quit, cancel)
				}
				err := await(ctx, patience, func() uint64 { return uint64(min(time.Since(began), c.beats)) }, func() error {
					if c.end == 0 {
						<-held
					}
					time.Sleep(c.end)
					return failed
				})
				if took := time.Since(began); !errors.Is(err, c.want) || took < c.at || took > c.at+glance {
					t.Errorf("%v after %v, want %v after %v", err, took, c.want, c.at)
				}
			})
		})
	}
}

// TestAwaitStopped stops the process for long, which a look that takes as long stands for: that is
// no silence of the storage.
func TestAwaitStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, looks := errors.New("failed"), 0
		err := await(t.Context(), patience, func() uint64 {
			if looks++; looks == 3 {
				time.Sleep(10 * patience)
			}
			return 0
		}, func() error {
			time.Sleep(10*patience + patience/2)
			return failed
		})
		if !errors.Is(err, failed) {
			t.Error(err)
		}
	})
}

// TestReplacedAtOpen: a file that becomes a pipe between the look and the open is refused, and
// nothing waits for a writer.
func TestReplacedAtOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	var s Session
	if err := s.open(Target{Path: name}, info, 0); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(s.file.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	s.shut()
	if err := errors.Join(os.Remove(name), unix.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.open(Target{Path: name}, info, 0); !errors.Is(err, ErrReplaced) {
		t.Error(err)
	}
	s.shut()
}

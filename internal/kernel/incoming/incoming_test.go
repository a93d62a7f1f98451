package incoming

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// closing is a connection that notes its end.
type closing struct{ closed bool }

func (c *closing) Close() error { c.closed = true; return nil }

// accepted wraps an errno as package net does.
func accepted(errno syscall.Errno) error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", errno)}
}

// TestCloseWithWaits ends a context, which closes a listener that takes its time over it: a server
// that has ended must not leave the port to that.
func TestCloseWithWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun, release, returned := make(chan bool), make(chan bool), make(chan bool)
	closed := CloseWith(ctx, func() {
		close(begun)
		<-release
	})
	cancel()
	<-begun // by the goroutine of the context
	go func() {
		closed()
		close(returned)
	}()
	select {
	case <-returned:
		t.Error("closed returned before the listener was closed")
	case <-time.After(10 * time.Millisecond): // on a busy machine the fault may escape, once
	}
	close(release)
	<-returned

	calls := 0
	closed = CloseWith(t.Context(), func() { calls++ })
	closed() // a server that ends while its context goes on
	closed()
	if calls != 1 {
		t.Errorf("%d calls without the end of the context", calls)
	}
}

// TestConnectionsOutliveShortages has a listener that cannot accept for an hour, for each reason.
func TestConnectionsOutliveShortages(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.EPERM, syscall.EAGAIN, syscall.EIO} {
		t.Run(errno.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				began, calls, reports := time.Now(), 0, 0
				var taken []*closing
				err := Connections(ctx, func() (*closing, error) {
					calls++
					if len(taken) == 0 && time.Since(began) < time.Hour {
						return nil, accepted(errno)
					}
					return new(closing), nil
				}, func(err error) {
					reports++
					if !errors.Is(err, errno) {
						t.Errorf("reported %v", err)
					}
				}, func(c *closing) {
					taken = append(taken, c)
					if len(taken) == 2 {
						cancel()
					}
				})
				if err != nil || len(taken) != 2 || taken[0].closed {
					t.Errorf("%v, %d connections", err, len(taken))
				}
				if late := time.Since(began) - time.Hour; late > time.Second {
					t.Errorf("served %v after the shortage", late)
				}
				// 5, 10, … 640 ms and then every second.
				if calls < 3600 || calls > 3620 {
					t.Errorf("%d calls in an hour", calls)
				}
				if reports < 59 || reports > 61 {
					t.Errorf("%d reports in an hour", reports)
				}
			})
		})
	}
}

// TestShortagesStartAnew: after a connection, the first rest is short again.
func TestShortagesStartAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Retry
		for range 3 {
			for _, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
				began := time.Now()
				if err := r.After(t.Context(), accepted(syscall.ENOBUFS)); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(began); got != want*time.Millisecond {
					t.Errorf("rested %v, want %v ms", got, want)
				}
			}
			r.Done()
		}
	})
}

// TestPeersCostNoRest: strangers that cause errors must not keep a loop from those who want to be
// served; an error that does not go away must not keep a processor busy.
func TestPeersCostNoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Retry
		began := time.Now()
		for i := range peersInARow {
			if time.Since(began) != 0 {
				t.Fatalf("rested after %d errors", i)
			}
			if err := r.After(t.Context(), ofPeer[i%len(ofPeer)]); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(began) != shortestRest {
			t.Errorf("%d errors, and a rest of %v", peersInARow, time.Since(began))
		}
		for range 100 * peersInARow {
			_ = r.After(t.Context(), ofPeer[0])
		}
		if time.Since(began) < 90*time.Second {
			t.Errorf("only %v for an error that stays", time.Since(began))
		}
	})
}

// TestConnectionsEnd: while they rest, with a connection in the last moment, and when the listener
// is of no use any more.
func TestConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1234*time.Millisecond)
		defer cancel()
		began := time.Now()
		fail := func() (*closing, error) { return nil, accepted(syscall.EMFILE) }
		if err := Connections(ctx, fail, nil, func(*closing) {}); err != nil {
			t.Errorf("at the end of its context: %v", err)
		}
		if time.Since(began) != 1234*time.Millisecond {
			t.Errorf("ended after %v", time.Since(began))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	last := new(closing)
	late := func() (*closing, error) { cancel(); return last, nil }
	if err := Connections(ctx, late, nil, func(*closing) { t.Error("taken after the end") }); err != nil || !last.closed {
		t.Errorf("in the last moment: %v, closed: %t", err, last.closed)
	}
	for _, why := range append([]error{net.ErrClosed, io.EOF, errors.New("some listener")}, errnos(ofSocket)...) {
		calls := 0
		gone := func() (*closing, error) { calls++; return nil, fmt.Errorf("accept: %w", why) }
		if err := Connections(t.Context(), gone, nil, func(*closing) {}); !errors.Is(err, why) || calls != 1 {
			t.Errorf("%v: %v after %d calls", why, err, calls)
		}
	}
}

func errnos(all []syscall.Errno) (list []error) {
	for _, e := range all {
		list = append(list, e)
	}
	return list
}

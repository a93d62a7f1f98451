package sys

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRing writes a repeating stream in calls of irregular sizes and positions, and reads it back
// as one continuous stream.
func TestRing(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	period := []byte("0123456789abcdefg")
	const most = 1000
	r := NewRing(period, most)
	stream := bytes.Repeat(period, 2+most/len(period))
	for _, c := range []struct{ at, n int }{{0, 1}, {16, 1}, {16, 2}, {3, 17}, {0, 34}, {1, 34}, {16, most}, {5, 0}} {
		for _, wait := range []WaitFor{WaitKept, WaitTold, WaitNone} {
			sent, err := r.Write(fds[0], c.at, c.n, wait)
			if err != nil || sent != c.n {
				t.Fatalf("at %d: %d of %d bytes, %v", c.at, sent, c.n, err)
			}
			if c.n == 0 {
				continue
			}
			got := make([]byte, most)
			n, err := unix.Read(fds[1], got)
			if err != nil || !bytes.Equal(got[:n], stream[c.at:c.at+c.n]) {
				t.Errorf("at %d: read %q, want %q, %v", c.at, got[:n], stream[c.at:c.at+c.n], err)
			}
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		if _, err := r.Write(fds[0], 3, 40, WaitNone); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per call", n)
	}

	// Without a reader the socket fills up.
	if err := SetTimeout(fds[0], time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []WaitFor{WaitNone, WaitTold, WaitKept} {
		for err = nil; err == nil; {
			_, err = r.Write(fds[0], 0, most, wait)
		}
		if !errors.Is(err, ErrTimeout) {
			t.Errorf("a full socket, wait %d: %v", wait, err)
		}
	}
	_ = unix.Close(fds[1])
	// Without MSG_NOSIGNAL a signal would end this process.
	if _, err := r.Write(fds[0], 0, 1, WaitTold); !errors.Is(err, unix.EPIPE) {
		t.Errorf("a closed socket: %v", err)
	}
}

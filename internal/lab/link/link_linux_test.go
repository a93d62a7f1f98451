package link

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// patience bounds every wait for a frame. It guards against a hang and decides nothing else.
const patience = 2 * time.Minute

// inNamespace runs f on a thread in a new network namespace and discards the thread afterwards.
func inNamespace(t *testing.T, f func(t *testing.T, c *nl.Client)) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	type outcome struct{ missing, fail error }
	done := make(chan outcome)
	go func() {
		runtime.LockOSThread() // never unlocked: no other goroutine may run on this thread
		var o outcome
		defer func() { done <- o }()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			o.missing = err
			return
		}
		c, err := nl.Dial()
		if err != nil {
			o.fail = err
			return
		}
		defer c.Close()
		f(t, c)
	}()
	switch o := <-done; {
	case o.missing != nil:
		testenv.Missing(t, testenv.NetNS, "new network namespace: ", o.missing)
	case o.fail != nil:
		t.Fatal(o.fail)
	}
}

// ends makes outer0 – link0 (emulated) link1 – outer1 and returns the sockets of the outer ends.
func ends(t *testing.T, c *nl.Client, out, back Params, opt Options) (l *Link, send *writer, receive reader,
	fds [2]int) {
	t.Helper()
	// Only the test may send packets here.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	var readers [2]reader
	for i, pair := range [][2]string{{"outer0", "link0"}, {"outer1", "link1"}} {
		if err := c.AddVeth(pair[0], pair[1], -1); err != nil {
			t.Error(err)
			return
		}
		for _, name := range pair {
			if err := c.SetUp(name); err != nil {
				t.Error(err)
				return
			}
		}
		fd, r, err := openSocket(pair[0], Options{})
		if err != nil {
			t.Error(err)
			return
		}
		fds[i], readers[i] = fd, r
	}
	l, err := Start("link0", "link1", out, back, opt)
	if err != nil {
		t.Error(err)
		return
	}
	return l, &writer{fd: fds[0], m: newMessages()}, readers[1], fds
}

// collect reads until n frames of the wanted kind have arrived.
func collect(fd int, r reader, n int, wanted func([]byte) bool) (got [][]byte) {
	fdset := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for len(got) < n {
		if ready, _ := unix.Poll(fdset, int(patience/time.Millisecond)); ready == 0 {
			return got
		}
		_, _, err := r.read(func(b []byte) {
			if wanted(b) {
				got = append(got, bytes.Clone(b))
			}
		})
		if err != nil {
			return got
		}
	}
	return got
}

func isTest(b []byte) bool {
	return len(b) > headerLen+13 && b[headerLen+12] == 0x88 && b[headerLen+13] == 0xb5
}

func TestNetnsLinkCarriesFrames(t *testing.T) {
	for name, opt := range map[string]Options{"recvmmsg": {}, "ring": {ForceRing: true}} {
		t.Run(name, func(t *testing.T) {
			inNamespace(t, func(t *testing.T, c *nl.Client) {
				l, send, receive, fds := ends(t, c, Params{DelaySeconds: 0.002}, Params{}, opt)
				if l == nil {
					return
				}
				const n = 2*ringSlots + batch // more than two turns of the ring
				var sent, got [][]byte
				for i := range n {
					sent = append(sent, plain(60+i*7%1455, i))
				}
				for len(got) < n {
					from := len(got)
					refused, err := send.write(sent[from:min(n, from+batch)])
					if err != nil || refused > 0 {
						t.Errorf("sending: %d refused, %v", refused, err)
						break
					}
					now := collect(fds[1], receive, min(batch, n-from), isTest)
					if len(now) == 0 {
						t.Errorf("no frame after the first %d: %+v", from, l.Counters())
						break
					}
					got = append(got, now...)
				}
				for i := range got {
					if !bytes.Equal(got[i][headerLen:], sent[i][headerLen:]) {
						t.Errorf("frame %d changed or out of order", i)
						break
					}
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if c := l.Counters().Out; c.Overruns+c.Refused != 0 {
					t.Errorf("%+v", c)
				}
			})
		})
	}
}

// A super-frame passes whole, and its header still says which segmentation remains to be done.
func TestNetnsLinkCarriesSuperFrames(t *testing.T) {
	for name, opt := range map[string]Options{"recvmmsg": {}, "ring": {ForceRing: true}} {
		t.Run(name, func(t *testing.T) {
			inNamespace(t, func(t *testing.T, c *nl.Client) {
				l, send, receive, fds := ends(t, c, Params{RateBitsPerSec: 1e9}, Params{}, opt)
				if l == nil {
					return
				}
				for _, kind := range []byte{tcp4, tcp6} {
					super := superFrame(kind, 60_000, 1428)
					if refused, err := send.write([][]byte{super}); err != nil || refused > 0 {
						t.Errorf("sending: %d refused, %v", refused, err)
					}
					got := collect(fds[1], receive, 1, func(b []byte) bool { return len(b) > 1000 })
					if len(got) != 1 || !bytes.Equal(got[0][headerLen:], super[headerLen:]) {
						t.Errorf("kind %d: %d frames, %+v", kind, len(got), l.Counters())
						continue
					}
					if f, err := Parse(got[0]); err != nil || f.Segments() != 43 {
						t.Errorf("kind %d: arrived as %d segments, %v", kind, f.Segments(), err)
					}
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestNetnsLinkKeepsTheDelay moves real frames on a clock that only the test turns, so that the
// delay is judged to the nanosecond on a machine of any speed.
func TestNetnsLinkKeepsTheDelay(t *testing.T) {
	inNamespace(t, func(t *testing.T, c *nl.Client) {
		const delay = 20 * time.Millisecond
		var now atomic.Int64
		p := Params{DelaySeconds: delay.Seconds()}
		l, send, receive, fds := ends(t, c, p, Params{},
			Options{clock: func() time.Duration { return time.Duration(now.Load()) }})
		if l == nil {
			return
		}
		defer func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		if _, err := send.write([][]byte{plain(100, 1)}); err != nil {
			t.Error(err)
		}
		for deadline := time.Now().Add(patience); l.Counters().Out.InPackets == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("the link never read the frame")
				return
			}
		}
		now.Store(int64(delay) - 1)
		// A lane applies a change at the end of a round. The second of two changes therefore ends a
		// round that began after the clock was turned.
		for range 2 {
			if err := l.Set(p, Params{}); err != nil {
				t.Error(err)
			}
		}
		if c := l.Counters().Out; c.OutPackets != 0 || c.WaitingPackets != 1 {
			t.Errorf("one nanosecond before the frame is due: %+v", c)
		}
		now.Store(int64(delay))
		if err := l.Set(p, Params{}); err != nil {
			t.Error(err)
		}
		if got := collect(fds[1], receive, 1, isTest); len(got) != 1 {
			t.Errorf("%d frames when the frame is due: %+v", len(got), l.Counters())
		}
	})
}

func TestNetnsLinkChangeAndVanishingInterface(t *testing.T) {
	inNamespace(t, func(t *testing.T, c *nl.Client) {
		l, send, receive, fds := ends(t, c, Params{LossRatio: 1}, Params{}, Options{})
		if l == nil {
			return
		}
		frame := [][]byte{plain(100, 1)}
		if _, err := send.write(frame); err != nil {
			t.Error(err)
		}
		for l.Counters().Out.DroppedLoss == 0 {
			time.Sleep(time.Millisecond) // bounded by the test's own limit
		}
		if err := l.Set(Params{RateBitsPerSec: 1}, Params{}); err == nil {
			t.Error("a rate of 1 bit per second was accepted")
		}
		if err := l.Set(Params{}, Params{}); err != nil {
			t.Error(err)
		}
		if _, err := send.write(frame); err != nil {
			t.Error(err)
		}
		if got := collect(fds[1], receive, 1, isTest); len(got) != 1 {
			t.Errorf("%d frames after the change: %+v", len(got), l.Counters())
		}
		if err := c.DeleteLink("outer1"); err != nil {
			t.Error(err)
		}
		if _, err := send.write(frame); err != nil {
			t.Error(err)
		}
		// Close must end both lanes although an interface is missing.
		_ = l.Close()
	})
}

func TestStartRefuses(t *testing.T) {
	if _, err := Start("no-such-a", "no-such-b", Params{}, Params{}, Options{}); err == nil {
		t.Error("missing interfaces were joined")
	}
	if _, err := Start("lo", "lo", Params{LossRatio: -1}, Params{}, Options{}); err == nil {
		t.Error("a negative loss was accepted")
	}
}

// TestStartWithoutDescriptors lets Start run out of descriptors at its last step: it returns an
// error and closes the descriptors that it has opened.
func TestStartWithoutDescriptors(t *testing.T) {
	inNamespace(t, func(t *testing.T, c *nl.Client) {
		if err := c.AddVeth("link0", "link1", -1); err != nil {
			t.Error(err)
			return
		}
		var before unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: before.Max}); err != nil {
			t.Error(err)
			return
		}
		var all []int
		for {
			fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				break
			}
			all = append(all, fd)
		}
		defer func() {
			for _, fd := range all {
				_ = unix.Close(fd)
			}
		}()
		// Room for both packet sockets and one of the two eventfds.
		const room = 3
		for range room {
			_ = unix.Close(all[len(all)-1])
			all = all[:len(all)-1]
		}
		if l, err := Start("link0", "link1", Params{}, Params{}, Options{}); !errors.Is(err, unix.EMFILE) {
			t.Errorf("got %v, %v", l, err)
		}
		left := 0
		for range room {
			if fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				left++
				all = append(all, fd)
			}
		}
		if left != room {
			t.Errorf("kept %d descriptors", room-left)
		}
	})
}

// TestInterfaceDown checks that a lane sleeps after its interface went down, with either reader.
func TestInterfaceDown(t *testing.T) {
	for name, opt := range map[string]Options{"recvmmsg": {}, "ring": {ForceRing: true}} {
		t.Run(name, func(t *testing.T) {
			inNamespace(t, func(t *testing.T, c *nl.Client) {
				if err := errors.Join(c.AddVeth("link0", "link1", -1), c.SetUp("link0"), c.SetUp("link1")); err != nil {
					t.Error(err)
					return
				}
				fd, r, err := openSocket("link0", opt)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = errors.Join(r.close(), unix.Close(fd)) }()
				line, err := NewLine(Params{})
				if err != nil {
					t.Error(err)
					return
				}
				d := &lane{line: line, in: fd, from: r, wake: -1}
				if err := c.SetDown("link0"); err != nil {
					t.Error(err)
					return
				}
				fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: -1}}
				if err := d.wait(fds, 0); err != nil || fds[0].Revents&unix.POLLERR == 0 {
					t.Errorf("the interface went down: %v, events %#x", err, fds[0].Revents)
					return
				}
				for {
					n, _, err := r.read(func([]byte) {}) // frames from before
					if n == 0 || err != nil {
						break
					}
				}
				if n, err := unix.Poll(fds[:1], 0); n != 0 || err != nil {
					t.Errorf("still awake: events %#x, %v", fds[0].Revents, err)
				}
			})
		})
	}
}

package sys_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/sys"
)

func TestMain(m *testing.M) {
	before := descriptors()
	code := m.Run()
	if after := descriptors(); code == 0 && len(after) > len(before) {
		fmt.Fprintf(os.Stderr, "descriptors open before the tests: %q, after: %q\n", before, after)
		code = 1
	}
	os.Exit(code)
}

// descriptors returns what the open descriptors of this process point to, without the poller of
// Go's runtime and its wake-up, which remain open once they exist. Elsewhere than on Linux it
// returns nothing: Wine shows the /proc of the host, with the descriptors of a process that serves
// it.
func descriptors() []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var targets []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" {
			continue // err: the descriptor of the listing itself, closed by now
		}
		targets = append(targets, target)
	}
	return targets
}

func TestUnsupportedError(t *testing.T) {
	err := fmt.Errorf("open: %w", &sys.UnsupportedError{Feature: "time travel", Since: "Linux 9"})
	if !errors.Is(err, sys.ErrNotSupported) || errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v is the wrong answer", err)
	}
	if got, want := err.Error(), "open: time travel: not supported by this system (needs Linux 9)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for err, want := range map[error]string{nil: "supported", err: "unsupported", fs.ErrPermission: "unknown"} {
		if got := sys.SupportOf(err).String(); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// TestProbes checks the table against this kernel: a capability that has been in Linux for ten
// years cannot be missing.
func TestProbes(t *testing.T) {
	for _, p := range sys.Probes() {
		err := p.Check()
		t.Logf("%s: %v (%v)", p.Feature, sys.SupportOf(err), err)
		if runtime.GOOS == "linux" && sys.SupportOf(err) == sys.Unsupported {
			t.Errorf("%s: reported missing, but it exists since %s", p.Feature, p.Since)
		}
	}
}

func TestClocksDoNotGoBack(t *testing.T) {
	for name, read := range map[string]func() time.Duration{"monotonic": sys.Monotonic, "boottime": sys.Boottime} {
		last := read()
		for range 1000 {
			now := read()
			if now < last {
				t.Fatalf("%s: %v after %v", name, now, last)
			}
			last = now
		}
	}
	if m, b := sys.Monotonic(), sys.Boottime(); runtime.GOOS == "linux" && b < m {
		t.Errorf("boottime %v is behind monotonic %v: it must also count the time asleep", b, m)
	}
}

func TestBootID(t *testing.T) {
	a, err := sys.BootID()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := sys.BootID(); len(a) < 8 || runtime.GOOS == "linux" && len(a) != 36 || a != b {
		t.Errorf("%q, then %q", a, b)
	}
}

func TestParseCPUList(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
		ok   bool
	}{
		{"0", []int{0}, true},
		{"0-3,8,10-11\n", []int{0, 1, 2, 3, 8, 10, 11}, true},
		{"", nil, true},
		{"\n", nil, true},
		{"3-1", nil, false},
		{"-1", nil, false},
		{"a", nil, false},
		{"1-", nil, false},
		{"0-99999999", nil, false},
		{"1,,2", nil, false},
	} {
		got, err := sys.ParseCPUList(c.in)
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.in, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, d)
		}
	}
}

func FuzzParseCPUList(f *testing.F) {
	for _, s := range []string{"0-3,8", "", "0-65535", "1-2,1-2", "-", "9999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := sys.ParseCPUList(s)
		if err != nil {
			return
		}
		for _, c := range cpus {
			if c < 0 || c >= 1<<16 {
				t.Fatalf("%q: cpu %d", s, c)
			}
		}
		if len(cpus) > 1<<16 {
			t.Fatalf("%q: %d cpus", s, len(cpus))
		}
	})
}

func TestPinMovesTheThread(t *testing.T) {
	cpus, err := sys.AllowedCPUs()
	if errors.Is(err, sys.ErrNotSupported) {
		if err := sys.Pin(0); !errors.Is(err, sys.ErrNotSupported) {
			t.Errorf("pin: %v", err)
		}
		return
	}
	if err != nil || len(cpus) == 0 || !slices.IsSorted(cpus) {
		t.Fatalf("allowed %v: %v", cpus, err)
	}
	online, err := sys.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cpus {
		if !slices.Contains(online, c) {
			t.Errorf("cpu %d is allowed but not online: %v", c, online)
		}
	}
	// The goroutine ends with its thread locked, so the thread and its mask end too.
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		for _, c := range cpus {
			if err := sys.Pin(c); err != nil {
				result <- err
				return
			}
			now, err := sys.AllowedCPUs()
			if err != nil || !slices.Equal(now, []int{c}) {
				result <- fmt.Errorf("pinned to %d, allowed %v: %v", c, now, err)
				return
			}
		}
		result <- sys.Pin(1 << 20)
	}()
	if err := <-result; err == nil || err.Error() != "pin thread to cpu 1048576: invalid argument" {
		t.Errorf("pin to a missing cpu: %v", err)
	}
}

// The time of a thread is read from another thread, and grows by what that thread does alone.
func TestThreadTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has it")
	}
	id, burnt, end := make(chan int), make(chan time.Duration), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		id <- sys.ThreadID()
		own, _ := sys.ThreadTime(sys.ThreadID())
		for used := own; used < own+5*time.Millisecond; {
			used, _ = sys.ThreadTime(sys.ThreadID())
		}
		burnt <- 5 * time.Millisecond
		<-end
	}()
	thread := <-id
	least := <-burnt
	used, ok := sys.ThreadTime(thread)
	again, _ := sys.ThreadTime(thread)
	if !ok || used < least || again < used {
		t.Errorf("read %v, then %v (%v), of a thread that used %v", used, again, ok, least)
	}
	close(end)
	if _, ok := sys.ThreadTime(0); ok {
		t.Error("thread 0 has a time")
	}
}

func TestCapabilities(t *testing.T) {
	caps, err := sys.Capabilities()
	if errors.Is(err, sys.ErrNotSupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 && caps == 0 {
		t.Error("root without any capability")
	}
	if s := sys.CapabilitySet(1 << sys.CapNetRaw); !s.Has(sys.CapNetRaw) || s.Has(sys.CapNetAdmin) || s.Has(99) {
		t.Errorf("set %b", s)
	}
}

// kernelTCPInfo returns a struct tcp_info in which every 32-bit word holds its own offset, so that
// a field read at the wrong offset is visible.
func kernelTCPInfo(n int) []byte {
	b := make([]byte, n)
	for at := 8; at+4 <= n; at += 4 {
		binary.NativeEndian.PutUint32(b[at:], uint32(at))
	}
	return b
}

// TestTCPInfoOffsets checks the decoder against the offsets that a C compiler computes for
// include/uapi/linux/tcp.h.
func TestTCPInfoOffsets(t *testing.T) {
	b := kernelTCPInfo(280)
	copy(b, []byte{1, 2, 3, 4, 5, byte(sys.OptTimestamps | sys.OptWScale)})
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		b[6], b[7] = 0x7a, 1 // a low, 7 high
	} else {
		b[6], b[7] = 0xa7, 0x80
	}
	i, err := sys.DecodeTCPInfo(b)
	if err != nil {
		t.Fatal(err)
	}
	if i.State != 1 || i.Backoff != 5 || i.SndWScale != 10 || i.RcvWScale != 7 || !i.DeliveryRateAppLimited {
		t.Errorf("head %+v", i)
	}
	if !i.Options.Has(sys.OptWScale) || i.Options.Has(sys.OptSACK) {
		t.Errorf("options %b", i.Options)
	}
	for name, c := range map[string][2]uint64{
		"rto": {uint64(i.RTOMicros), 8}, "snd_mss": {uint64(i.SndMSSBytes), 16}, "rcv_mss": {uint64(i.RcvMSSBytes), 20},
		"unacked": {uint64(i.UnackedPackets), 24}, "pmtu": {uint64(i.PMTUBytes), 60}, "rtt": {uint64(i.RTTMicros), 68},
		"snd_cwnd": {uint64(i.SndCwndPackets), 80}, "rcv_space": {uint64(i.RcvSpaceBytes), 96},
		"total_retrans": {uint64(i.TotalRetrans), 100},
		"segs_out":      {uint64(i.SegsOut), 136}, "min_rtt": {uint64(i.MinRTTMicros), 148},
		"data_segs_out": {uint64(i.DataSegsOut), 156},
		"delivered":     {uint64(i.Delivered), 192}, "dsack_dups": {uint64(i.DSACKDups), 216},
		"reord_seen": {uint64(i.ReordSeen), 220},
		"snd_wnd":    {uint64(i.SndWndBytes), 228}, "rcv_wnd": {uint64(i.RcvWndBytes), 232},
		"rehash":         {uint64(i.Rehash), 236},
		"total_rto_time": {uint64(i.TotalRTOTimeMillis), 244}, "received_ce": {uint64(i.ReceivedCE), 248},
		"last": {uint64(i.ReceivedCEBy), 272},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: read at %d, want %d", name, c[0], c[1])
		}
	}
	wide := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	for name, c := range map[string][2]uint64{
		"pacing_rate": {i.PacingRateBytes, wide(104)}, "bytes_acked": {i.BytesAcked, wide(120)},
		"bytes_received": {i.BytesReceived, wide(128)},
		"delivery_rate":  {i.DeliveryRateBytes, wide(160)}, "busy_time": {i.BusyMicros, wide(168)},
		"rwnd_limited":   {i.RwndLimitedMicros, wide(176)},
		"sndbuf_limited": {i.SndbufLimitedMicros, wide(184)}, "bytes_sent": {i.BytesSent, wide(200)},
		"bytes_retrans": {i.BytesRetrans, wide(208)},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %#x, want %#x", name, c[0], c[1])
		}
	}
}

// TestTCPInfoOfOlderKernels reads the lengths that kernels have returned over the years: the fields
// they have are set, the rest is zero.
func TestTCPInfoOfOlderKernels(t *testing.T) {
	for _, c := range []struct {
		length                   int
		chronographs, sndWnd, ok bool
	}{{92, false, false, false}, {104, false, false, true}, {192, true, false, true}, {224, true, false, true},
		{232, true, true, true}, {300, true, true, true}} {
		i, err := sys.DecodeTCPInfo(kernelTCPInfo(c.length))
		if (err == nil) != c.ok {
			t.Errorf("%d bytes: %v", c.length, err)
			continue
		}
		if !c.ok {
			continue
		}
		if i.Has(sys.TCPInfoChronographs) != c.chronographs || (i.SndbufLimitedMicros != 0) != c.chronographs {
			t.Errorf("%d bytes: chronographs %v, %d", c.length, i.Has(sys.TCPInfoChronographs), i.SndbufLimitedMicros)
		}
		if i.Has(sys.TCPInfoSndWnd) != c.sndWnd || (i.SndWndBytes != 0) != c.sndWnd {
			t.Errorf("%d bytes: snd_wnd %v, %d", c.length, i.Has(sys.TCPInfoSndWnd), i.SndWndBytes)
		}
		if i.TotalRetrans != 100 {
			t.Errorf("%d bytes: total_retrans %d", c.length, i.TotalRetrans)
		}
	}
}

// FuzzDecodeTCPInfo checks that a longer answer never changes the fields of a shorter one.
func FuzzDecodeTCPInfo(f *testing.F) {
	for _, n := range []int{0, 8, 103, 104, 192, 232, 236, 280, 400} {
		f.Add(kernelTCPInfo(n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := sys.DecodeTCPInfo(b)
		if err != nil {
			if len(b) >= 104 {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			return
		}
		longer, err := sys.DecodeTCPInfo(append(slices.Clone(b), make([]byte, 400)...))
		if err != nil {
			t.Fatal(err)
		}
		// A field truncated in the shorter answer is zero there; complete fields agree.
		if i.TotalRetrans != longer.TotalRetrans || i.State != longer.State || i.Has(sys.TCPInfoSndWnd) &&
			i.SndWndBytes != longer.SndWndBytes {
			t.Fatalf("%+v became %+v", i, longer)
		}
	})
}

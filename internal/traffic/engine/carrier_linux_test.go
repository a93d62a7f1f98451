package engine

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestPatience lingers on short paths, and on long ones for less than a thousandth of the turns in
// the end.
func TestPatience(t *testing.T) {
	var p patience
	for range 1000 {
		if !p.left() {
			t.Fatal("a short path lost patience")
		}
		p.learn(shortTurn)
	}
	var lingered int
	const turns = 1 << 20
	for range turns {
		if p.left() {
			lingered++
			p.learn(lingerTime)
		}
	}
	if lingered == 0 || lingered > turns/mostHaste+15 {
		t.Errorf("lingered in %d of %d turns of a long path", lingered, turns)
	}
	// The path has become short: patience comes back.
	for range 20 * mostHaste {
		if p.left() {
			p.learn(time.Microsecond)
		}
	}
	if p.haste != 0 || p.next != firstHaste {
		t.Errorf("a path that has become short: %+v", p)
	}
}

// TestWholeSegments expects as many whole segments as one message to the NIC takes, where the
// congestion control paces by timers, and only there.
func TestWholeSegments(t *testing.T) {
	for _, c := range []struct {
		congestion string
		mss, want  int
	}{
		{"bbr", 1448, 45 * 1448}, {"bbr3", 1428, 45 * 1428}, {"bbr", 8948, 7 * 8948}, {"bbr", 536, 121 * 536},
		{"bbr", 65483, 65483}, {"bbr", 0, 0}, {"cubic", 1448, 0}, {"reno", 1448, 0}, {"", 1448, 0},
	} {
		if got := wholeSegment(c.congestion, c.mss); got != c.want {
			t.Errorf("%q, mss %d: %d bytes, want %d", c.congestion, c.mss, got, c.want)
		}
	}
}

// TestTurnOfPacedStream lets a stream that the kernel paces, among many, send in whole segments and
// without sleeping, and any other in large calls.
func TestTurnOfPacedStream(t *testing.T) {
	near, far, err := loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	defer far.Close()
	for _, c := range []struct {
		congestion string
		crowded    bool
		paced      bool
	}{{"reno", true, false}, {"bbr", false, false}, {"bbr", true, true}} {
		if err := sys.SetCongestion(near.fd, c.congestion); errors.Is(err, fs.ErrNotExist) ||
			errors.Is(err, fs.ErrPermission) {
			t.Logf("%s: %v", c.congestion, err) // reno is always there
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		var moved int64
		from, call, err := newSource(SendCopy, near)
		if err != nil {
			t.Fatal(err)
		}
		s := &streamSender{conn: near, from: from, call: call}
		if err := s.share(&moved, c.crowded); err != nil {
			t.Fatal(err)
		}
		info, err := near.Info()
		if err != nil {
			t.Fatal(err)
		}
		whole := s.call%int(info.SndMSSBytes) == 0 && s.turn() == int64(segmentsPerTurn*s.call) && !s.linger(true)
		large := s.call == call && s.turn() == turnBytes && s.linger(true)
		if whole != c.paced || large == c.paced {
			t.Errorf("%+v: calls of %d bytes, turns of %d", c, s.call, s.turn())
		}
	}
}

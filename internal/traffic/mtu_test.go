package traffic

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/echo"
)

func TestMTU(t *testing.T) {
	t.Parallel()
	if err := sys.Probes()[0].Check(); errors.Is(err, sys.ErrNotSupported) {
		t.Skip("searches need Linux")
	}
	w := newWorld(t)
	w.withEcho(t)
	r := run(t, w, Spec{Test: MTU, Duration: time.Hour}, nil)
	// The MTU of the loopback interface is one byte more than the longest possible packet.
	want := PathMTU{UpBytes: 65535, DownBytes: 65535, LocalMTUBytes: 65536, MSSBytes: r.MSSBytes,
		LocalMSSBytes: r.MTU.LocalMSSBytes, RemoteMSSBytes: r.MTU.RemoteMSSBytes}
	if diff := cmp.Diff(&want, r.MTU); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.MTUBytes != 65535 || r.MSSBytes < 1000 || r.Method != "udp echo" || want.LocalMSSBytes < r.MSSBytes {
		t.Errorf("%+v %+v", r, r.MTU)
	}
	if r.DurationSeconds >= 3600 {
		t.Errorf("took %v s", r.DurationSeconds)
	}
}

func TestMTUWithoutAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link.timing = noGoodbye // the far end gives no reason of its own
	w.link.PeerIP = "no address"
	done := w.serve(t.Context())
	if _, err := Run(t.Context(), w.link, Spec{Test: MTU}, nil); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("near: %v", err)
	}
	// The search may fail before the window of the far end is over, which is then stopped in it.
	if err := <-done; err != nil && !errors.Is(err, errStopped) {
		t.Errorf("far: %v", err)
	}
}

func TestSearchedTellsWhatWasFound(t *testing.T) {
	end := func(snd, adv, pmtu int) End {
		return End{TCP: []tcpinfo.TCPInfo{{SndMSSBytes: snd, AdvMSSBytes: adv, PMTUBytes: pmtu, TimestampsOK: true}}}
	}
	r := &Result{Ends: Ends{Local: end(1348, 1448, 1500), Remote: end(1208, 1448, 1500)}, LocalAddress: "192.0.2.1"}
	r.searched(echo.PathMTU{
		Method: "udp echo", Up: echo.PathSide{Bytes: 1400, Exact: true, Interface: 1500, Reported: 1400},
		Down: echo.PathSide{Bytes: 1300, Interface: 9000, BlackHole: true},
		Troubles: []echo.Trouble{{Text: "fragmentation needed", By: netip.MustParseAddr("192.0.2.9"),
			MTU: 1400, Count: 2}},
	})
	want := &PathMTU{
		UpBytes: 1400, DownBytes: 1300, BlackHoleDown: true, LocalMTUBytes: 1500, RemoteMTUBytes: 9000, MSSBytes: 1208,
		ReportedMTUBytes: 1400,
		LocalMSSBytes:    1460, RemoteMSSBytes: 1460, MSSClampedUp: true, MSSClampedDown: true,
	}
	if diff := cmp.Diff(want, r.MTU); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text := strings.Join(r.Warnings, "\n")
	if r.MTUBytes != 1300 || !strings.Contains(text, "path mtu down: stopped") ||
		!strings.Contains(text, "192.0.2.9 says: fragmentation needed (the next link takes 1400 bytes), 2 times") {
		t.Errorf("%d, %q", r.MTUBytes, r.Warnings)
	}
}

func TestSegmentsThatDidNotComeAbout(t *testing.T) {
	for _, c := range []struct {
		asked, got int
		want       bool // a warning
	}{{0, 1448, false}, {1460, 1448, false}, {1000, 988, false}, {9000, 0, false}, {9000, 8988, false},
		{9000, 8948, true}, {9000, 1448, true}} {
		if got := smallerSegments(c.asked, c.got); c.want != (got != "") {
			t.Errorf("asked for %d, got %d: %q", c.asked, c.got, got)
		}
	}
}

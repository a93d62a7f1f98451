package tcpinfo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/sys"
)

func TestFlowIsTheDifferenceOverTheWindow(t *testing.T) {
	a := sys.TCPInfo{
		Length: 248, BusyMicros: 5e5, RwndLimitedMicros: 1e5, BytesAcked: 1000, SegsOut: 1<<32 - 10,
		TotalRetrans: 1<<32 - 1, DSACKDups: 3,
	}
	b := sys.TCPInfo{
		Length: 248, BusyMicros: 25e5, RwndLimitedMicros: 11e5, SndbufLimitedMicros: 2e5, BytesAcked: 51_000,
		SegsOut: 30, TotalRetrans: 1, DSACKDups: 4,
		RTTMicros: 20_000, MinRTTMicros: 1<<32 - 1, SndCwndPackets: 10, SndMSSBytes: 1448, SndWndBytes: 64_000,
		Options:   sys.OptWScale | sys.OptSACK,
		SndWScale: 7, PMTUBytes: 1500,
	}
	f := Flow{Last: a}
	f.Open()
	for _, sample := range []sys.TCPInfo{
		{RTTMicros: 10_000, SndCwndPackets: 10, SndMSSBytes: 1000, SndWndBytes: 70_000},
		{RTTMicros: 30_000, SndCwndPackets: 20, SndMSSBytes: 1000},
	} {
		f.Add(sample, true)
	}
	f.Add(sys.TCPInfo{RTTMicros: 1e9, SndWndBytes: 1e9}, false) // outside the window
	f.Last = b
	f.Shut(Buffers{SendBytes: 87380, Congestion: "cubic"})
	got := f.Report(true)
	want := TCPInfo{
		Sender: true, BusySeconds: 2, RwndLimitedSeconds: 1, SndbufLimitedSeconds: 0.2, RTTSeconds: 0.02,
		CwndBytes: 14480, SndMSSBytes: 1448,
		SndWndBytes: 64_000, MaxSndWndBytes: 70_000, SndWScale: 7, WScaleOK: true, SACKOK: true, BytesAcked: 50_000,
		SegsOut: 40, RetransSegs: 2, DSACKDups: 1, SndBufBytes: 87380, PMTUBytes: 1500, CongestionControl: "cubic",
		MeanRTTSeconds: 0.02, MeanCwndBytes: 15_000,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestReceivedBytesStayWithinWhatArrived: a window that opens while a hole is open gets what waited
// behind it, and must not count it.
func TestReceivedBytesStayWithinWhatArrived(t *testing.T) {
	for _, c := range []struct {
		name        string
		open, shut  sys.TCPInfo
		want        int64
		wantUnknown bool
	}{
		{"no hole", sys.TCPInfo{Length: 248, BytesReceived: 1000, DataSegsIn: 1, RcvMSSBytes: 1000},
			sys.TCPInfo{Length: 248, BytesReceived: 101_000, DataSegsIn: 101, RcvMSSBytes: 1000}, 100_000, false},
		{"50 segments waited", sys.TCPInfo{Length: 248, BytesReceived: 10_000, DataSegsIn: 60, RcvMSSBytes: 1000},
			sys.TCPInfo{Length: 248, BytesReceived: 110_000, DataSegsIn: 110, RcvMSSBytes: 1000}, 50_000, false},
		{"merged by the card", sys.TCPInfo{Length: 248, BytesReceived: 64_000, DataSegsIn: 1, RcvMSSBytes: 1448},
			sys.TCPInfo{Length: 248, BytesReceived: 640_000, DataSegsIn: 10, RcvMSSBytes: 1448}, 576_000, false},
		{"small segments", sys.TCPInfo{Length: 248, BytesReceived: 100, DataSegsIn: 10, RcvMSSBytes: 1448},
			sys.TCPInfo{Length: 248, BytesReceived: 300, DataSegsIn: 30, RcvMSSBytes: 1448}, 200, false},
		{"Linux 4.4", sys.TCPInfo{Length: 144, BytesReceived: 1000}, sys.TCPInfo{Length: 144, BytesReceived: 5000},
			4000, false},
		{"Linux 3.10", sys.TCPInfo{Length: 104}, sys.TCPInfo{Length: 104}, 0, true},
		{"not readable at first", sys.TCPInfo{}, sys.TCPInfo{Length: 248, BytesReceived: 5000}, 0, true},
	} {
		f := Flow{Last: c.open}
		f.Open()
		f.Last = c.shut
		f.Shut(Buffers{})
		if n, ok := f.ReceivedBytes(); n != c.want || ok == c.wantUnknown {
			t.Errorf("%s: %d, %v", c.name, n, ok)
		}
	}
}

func TestIntervalsOfAConnection(t *testing.T) {
	var f Flow
	if _, ok := f.Cut(); ok {
		t.Error("an interval without a reading")
	}
	f.Add(sys.TCPInfo{Length: 248, TotalRetrans: 1<<32 - 1, RwndLimitedMicros: 1e6,
		SndSSThreshPackets: infiniteSsthresh}, false)
	if p, ok := f.Cut(); !ok || p != (Part{}) {
		t.Errorf("first: %+v", p)
	}
	f.Add(sys.TCPInfo{
		Length: 248, TotalRetrans: 2, RwndLimitedMicros: 15e5, SndbufLimitedMicros: 1e5, RTTMicros: 2000,
		RTTVarMicros:   500,
		SndCwndPackets: 10, SndMSSBytes: 1000, SndSSThreshPackets: 7, DeliveryRateBytes: 125,
	}, true)
	want := Part{
		RTTSeconds: 0.002, RTTVarSeconds: 0.0005, CwndBytes: 10_000, SsthreshBytes: 7000, DeliveryRateBitsPerSec: 1000,
		RwndLimitedSeconds: 0.5, SndbufLimitedSeconds: 0.1, RetransmittedSegments: 3,
	}
	got, _ := f.Cut()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLossesAddUp checks every explanation, and that together they are the loss, whatever the
// counters say.

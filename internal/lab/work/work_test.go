package work

import "testing"

func TestCheck(t *testing.T) {
	negative, ninth := -1, 9
	for _, w := range []Work{
		{Kind: TCPSink, Host: "far"}, {Kind: TCPSource, Host: "near", To: "far", Rate: 1e6},
		{Kind: CPUHog, Host: "near", CPU: &ninth, Busy: 0.5},
	} {
		if err := w.Check(); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for _, w := range []Work{
		{}, {Kind: "nap", Host: "near"}, {Kind: TCPSink}, {Kind: TCPSink, Host: "far", To: "near"},
		{Kind: TCPSource, Host: "near"},
		{Kind: CPUHog, Host: "near", CPU: &negative}, {Kind: CPUHog, Host: "near", Busy: 2},
		{Kind: CPUHog, Host: "near", Count: 5000},
		{Kind: UDPSink, Host: "far", Port: 65000}, {Kind: UDPSink, Host: "far", Buffer: -1},
		{Kind: UDPSink, Host: "far", Packets: -1},
		{Kind: UDPEcho, Host: "far", Fill: 2}, {Kind: SlowListener, Host: "far", Interval: 1e9},
	} {
		if w.Check() == nil {
			t.Errorf("%+v: accepted", w)
		}
	}
	if f := (Work{Kind: CPUHog, Host: "near"}).filled(); f.Count != 1 || f.Busy != 1 || f.Port == 0 || f.Bytes == 0 {
		t.Errorf("defaults: %+v", f)
	}
}

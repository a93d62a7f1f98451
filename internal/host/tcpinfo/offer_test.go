package tcpinfo

import "testing"

func TestClamped(t *testing.T) {
	for _, c := range []struct {
		name           string
		adv, snd, pmtu int
		timestamps     bool
		window         int64
		want           bool
	}{
		{"as offered", 1448, 1448, 1500, true, 65160, false},
		{"without timestamps", 1460, 1460, 1500, false, 65160, false},
		{"over ipv6", 1428, 1428, 1500, true, 65160, false},
		{"offers more than the other takes", 8948, 1448, 1500, true, 65160, false},
		{"over ipv6, offers more than the other takes", 8928, 1428, 1500, true, 65160, false},
		{"by a tunnel", 1448, 1348, 1500, true, 65160, true},
		{"by the other's own path", 1448, 1348, 1400, true, 65160, false},
		{"by half the window, as over loopback", 65483, 32741, 65535, true, 65482, false},
		{"of jumbo frames", 8948, 1448, 9000, true, 65160, true},
		{"not known", 0, 1448, 1500, true, 65160, false},
	} {
		if got := Clamped(TCPInfo{AdvMSSBytes: c.adv},
			TCPInfo{SndMSSBytes: c.snd, PMTUBytes: c.pmtu, TimestampsOK: c.timestamps,
				MaxSndWndBytes: c.window}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

package printed

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSockets(t *testing.T) {
	text := `Netid State    Recv-Q Send-Q Local Address:Port  Peer Address:Port Process
nl    UNCONN   832    0                  4:0                 *      sk=0 cb=0 groups=0x00000000	 skmem:(r832,rb212992,t0,tb212992,f0,w0,o0,bl0,d0)
u_str ESTAB    0      0      * 1234    * 1235 users:(("x",pid=1,fd=3)) <->
udp   UNCONN   3840   0          127.0.0.53%lo:53       0.0.0.0:*     users:(("my prog",pid=9,fd=9)) ino:34 sk:7175 cgroup:/ <->
	 skmem:(r3840,rb4608,t0,tb212992,f256,w0,o0,bl0,d27)                                                                                                     
tcp   LISTEN   2      1          127.0.0.1:5000       0.0.0.0:*     users:(("python3",pid=18456,fd=3)) ino:35 sk:7176 cgroup:/ <->
	 skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d2) bbr cwnd:10 unacked:2
tcp   ESTAB    0      7   [fe80::1]%eth0:5000  [::ffff:192.0.2.7]:53388 ino:0 sk:1ffffffff <->
tcp   LISTEN   0      128               *:22             *:*
tcp   LISTEN   x      128               *:23             *:*
`
	at := netip.MustParseAddrPort
	want := []Socket{
		{Protocol: "udp", State: "UNCONN", ReceiveQueue: 3840, Local: at("127.0.0.53:53"), Cookie: 0x7175,
			Memory: SocketMemory{
				ReceiveBytes: 3840, ReceiveLimitBytes: 4608, SendLimitBytes: 212992, ForwardBytes: 256, Drops: 27}},
		{Protocol: "tcp", State: "LISTEN", ReceiveQueue: 2, SendQueue: 1, Local: at("127.0.0.1:5000"), Cookie: 0x7176,
			Memory: SocketMemory{
				ReceiveLimitBytes: 131072, SendLimitBytes: 16384, Drops: 2}},
		{Protocol: "tcp", State: "ESTAB", SendQueue: 7, Local: at("[fe80::1]:5000"), Remote: at("192.0.2.7:53388"),
			Cookie: 0x1ffffffff},
		{Protocol: "tcp", State: "LISTEN", SendQueue: 128, Local: at("[::]:22")},
	}
	if diff := cmp.Diff(want, ParseSockets(text),
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzSockets(f *testing.F) {
	f.Add("tcp LISTEN 2 1 127.0.0.1:5000 0.0.0.0:* sk:7\n\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d2)\n")
	f.Add("udp UNCONN 0 0 [fe80::1]%eth0:546 *:*\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range ParseSockets(text) {
			if !s.Local.IsValid() || s.Memory.ReceiveBytes < 0 || !strings.Contains(text, s.State) {
				t.Errorf("%+v", s)
			}
		}
	})
}

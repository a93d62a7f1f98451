package advice_test

import (
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/change/advice"
)

// TestProse: sentences in the forms of the write-ups, and sentences that only look like them.
func TestProse(t *testing.T) {
	const tcpip = `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\`
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Add a DWORD named TcpWindowSize with a large size. 131400 (decimal) is enough. Tcp1323Opts should be set to 3.",
			[]string{tcpip + "TcpWindowSize=131400", tcpip + "Tcp1323Opts=3"}},
		{"Create a registry DWORD called \"TcpWindowSize\" and give it 64240.", []string{tcpip + "TcpWindowSize=64240"}},
		{"A DWORD named TcpWindowSize may be 17520 or 131400.", nil}, // which of them?
		{"A DWORD named WallpaperStyle should be large, 131400.", nil},
		{"Set Tcp1323Opts to 1 on both hosts.", []string{tcpip + "Tcp1323Opts=1"}},
		{"Set MTU to 9000 on both hosts.", nil}, // a name of the registry, and a word
		{"On the router, kern.ipc.maxsockbuf should be set to 262144 first.", []string{"sysctl:kern.ipc.maxsockbuf=262144"}},
		{"The module was then loaded with (InterruptThrottleRate=0) on one side.",
			[]string{"module:e1000/InterruptThrottleRate=0"}},
		{"With SomeOtherThing=0 nothing changed.", nil},
		{"We compiled a kernel with DEVICE_POLLING and HZ=1000.", []string{"option:HZ=1000", "option:DEVICE_POLLING=yes"}},
		{"A new kernel had the HZ value set to 1500.", []string{"option:HZ=1500"}},
		{"Later the HZ value was set at 2500.", []string{"option:HZ=2500"}},
		{"The refresh rate of 75 HZ is fine.", nil},
		{"Rules of ipfw with skipto made the list shorter.", []string{"ipfw:skipto="}},
		{"ipfw add 100 skipto 5000 ip from any to 10.1.0.0/16", []string{"ipfw:skipto=5000"}},
		{"mount -t ramfs ramfs /mnt/ram", []string{"mount:ramfs=/mnt/ram"}},
		{"$mount -t ramfs ramfs /mnt/ram", []string{"mount:ramfs=/mnt/ram"}},
		{"mount -t tmpfs none /tmp", nil},
		{"kern.polling.user_frac\nvalue is 50%, and it was reduced to 30% later", nil},
		{"[connection]\nmatch-device=interface-name:eth0\nethernet.mtu=9000", []string{"link:*/mtu=9000"}},
	} {
		a, err := advice.Parse([]byte(c.text + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range a.Settings {
			got = append(got, s.Knob+"="+s.Value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestProseJudged: every form of a sentence has a fact, so that no line of the write-ups is read
// and then not judged.
func TestProseJudged(t *testing.T) {
	a, err := advice.Parse([]byte("Rules of ipfw with skipto\nmount -t ramfs ramfs /mnt/ram\n" +
		"sc config SharedAccess start= disabled\nthe HZ value was set at 2500\n"))
	if err != nil || len(a.Settings) != 4 {
		t.Fatalf("%+v, %v", a.Settings, err)
	}
	for _, j := range (advice.Target{}).Judge(a) {
		if j.Verdict == advice.Unknown || j.Why == "" || j.Source == "" {
			t.Errorf("%+v", j)
		}
	}
}

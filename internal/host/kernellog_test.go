package host

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKernelLog reads records as /dev/kmsg has them, with the sentences of kernels from 2.6 to
// 6.12.
func TestKernelLog(t *testing.T) {
	l := kernelLog{cards: []string{"eth0", "enp3s0", "eno1"}, now: 4000 * time.Second}
	for _, record := range []string{
		"4,1,1000000000,-;NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out\n SUBSYSTEM=net\n",
		"2,2,1500000000,-;r8169 0000:03:00.0 enp3s0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5376 ms\n",
		"3,3,1600000000,-;e1000e 0000:00:19.0 eno1: Detected Hardware Unit Hang:\\x0a  TDH  <9a>\n",
		"3,4,1700000000,-;e1000e 0000:00:19.0 eno1: Reset adapter unexpectedly\n",
		"3,5,1800000000,-;eth0: NAPI poll function e1000_clean+0x0/0x2f0 returned 65, exceeding its budget of 64.\n",
		"6,6,30000000,-;e1000e 0000:00:19.0 eno1: NIC Link is Down\n", // at the start
		"6,7,2000000000,-;e1000e 0000:00:19.0 eno1: NIC Link is Down\n",
		"6,8,2001000000,-;e1000e 0000:00:19.0 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: None\n",
		"6,9,2100000000,-;r8169 0000:03:00.0 enp3s0: Link is Down\n",
		"6,10,2200000000,-;enp3s0: link down\n",
		"6,11,2300000000,-;bnx2 0000:01:00.0 eth0: NIC Copper Link is Down\n",
		// Another host's or namespace's interface, text of a program, and names in quotes.
		"4,12,2400000000,-;NETDEV WATCHDOG: veth0 (veth): transmit queue 0 timed out\n",
		"12,13,2500000000,-;NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out\n",
		"5,14,2600000000,-;audit: type=1326 comm=\"eth0: Link is Down\" exe=\"/x\"\n",
		"6,15,2700000000,-;usb 1-1: Product: NETDEV WATCHDOG: eth0 (x): transmit queue 0 timed out\n",
		"6,16,2800000000,-;eth0: Link quality is low\n",
		"", "6,17", "6,18;x", "x,19,1,-;eth0: Link is Down", "6,20,-5,-;eth0: Link is Down\n",
	} {
		l.read([]byte(record))
	}
	type event struct {
		name  string
		kind  EventKind
		total int
		last  float64
	}
	var got []event
	for _, e := range l.events {
		got = append(got, event{e.Interface, e.Kind, e.Total, e.LastSeconds})
	}
	want := []event{
		{"eth0", QueueTimeout, 1, 3000}, {"enp3s0", QueueTimeout, 1, 2500}, {"eno1", HardwareHang, 2, 2300},
		{"eth0", NAPIBudget, 1, 2200}, {"eno1", LinkDown, 1, 2000}, {"eno1", LinkUp, 1, 1999},
		{"enp3s0", LinkDown, 2, 1800}, {"eth0", LinkDown, 1, 1700},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(event{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	hostile := printable("eth0: Link is Down \x1b]0;x\x07 \u202e" + strings.Repeat("é", 400))
	if len(hostile) > mostText || strings.ContainsFunc(hostile, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("%q", hostile)
	}
}

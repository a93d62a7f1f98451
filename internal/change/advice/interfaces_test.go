package advice

import (
	"slices"
	"strings"
	"testing"
)

// TestInterfaceFiles reads what files of interfaces, and the commands that write them, set.
func TestInterfaceFiles(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nmcli", "nmcli con mod cam0 802-3-ethernet.mtu 9000 ethtool.ring-rx 4096 ethtool.feature-gro off", []string{
			"link:*/mtu=9000", "ethtool:*/ring.rx=4096", "ethtool:*/feature.rx-gro=off"}},
		{"nmcli with an interface",
			"nmcli c add type ethernet ifname eth0 con-name x mtu 1400", []string{"link:eth0/mtu=1400"}},
		{"nmcli of three", "nmcli con mod x 802-3-ethernet.speed 1000 802-3-ethernet.duplex full " +
			"802-3-ethernet.auto-negotiate no", []string{"ethtool:*/link.forced=1000/full"}},
		{"nmcli that sets nothing", "nmcli con up x\nnmcli con mod x 802-3-ethernet.mtu 0", nil},
		{"keyfile",
			"[connection]\nid=x\ntype=ethernet\ninterface-name=eth0\n[ethernet]\nmtu=9000\n[ethtool]\nfeature-tso=false\n",
			[]string{"link:eth0/mtu=9000", "ethtool:eth0/feature.tx-tcp-segmentation=off"}},
		{"link", "[Match]\nOriginalName=eth0\n[Link]\nRxBufferSize=4096\nTCPSegmentationOffload=no\n" +
			"TransmitQueueLength=5000\n",
			[]string{"ethtool:eth0/ring.rx=4096", "ethtool:eth0/feature.tx-tcp-segmentation=off", "link:eth0/txqueuelen=5000"}},
		{"behind a link",
			"[Link]\nMTUBytes=9000\nnet.core.rmem_max = 1\n", []string{"link:*/mtu=9000", "sysctl:net.core.rmem_max=1"}},
		{"settings of a link with units", "[Link]\nMTUBytes=9K\nRxCoalesceSec=50us\n",
			[]string{"link:*/mtu=9216", "ethtool:*/coalesce.rx-usecs=50"}},
		{"route", "[Route]\nInitialCongestionWindow=20\n", []string{"route:default/initcwnd=20"}},
		{"ifupdown", "auto eth0\niface eth0 inet dhcp\n mtu 9000\n offload-gro off\n hardware-dma-ring-rx 4096\n" +
			" up ethtool -K $IFACE tso off\n down ethtool -K $IFACE tso on\n",
			[]string{"link:eth0/mtu=9000", "ethtool:eth0/feature.rx-gro=off", "ethtool:eth0/ring.rx=4096",
				"ethtool:$IFACE/feature.tx-tcp-segmentation=off"}},
		{"netplan",
			"network:\n  version: 2\n  ethernets:\n    eth0:\n      mtu: 9000\n      generic-receive-offload: false\n",
			[]string{"link:*/mtu=9000", "ethtool:*/feature.rx-gro=off"}},
		{"rc.conf", "gateway_enable=\"YES\"\nsysrc tcp_drop_synfin=YES\nsysrc hostname=x", []string{
			"sysctl:net.inet.ip.forwarding=1", "sysctl:net.inet.tcp.drop_synfin=1"}},
	} {
		a, err := Parse([]byte(c.text))
		if err != nil {
			t.Fatal(c.name, err)
		}
		var got []string
		for _, s := range a.Settings {
			got = append(got, s.Knob+"="+s.Value)
		}
		if !slices.Equal(got, c.want) || len(a.Unread) > 0 {
			t.Errorf("%s: %s\nwant %s; not understood: %v", c.name, strings.Join(got, " "), strings.Join(c.want, " "), a.Unread)
		}
	}
}

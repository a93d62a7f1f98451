package bootconf_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/knob"
)

func TestFindDevice(t *testing.T) {
	root := files(map[string]string{
		"sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0/net/eth0/address":          "52:54:00:AB:CD:EF\n",
		"sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0/net/eth0/addr_assign_type": "0\n",
		"sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/net/usb0/address":      "02:00:00:00:00:01\n",
		"sys/devices/virtual/net/dummy0/address":                                     "66:00:00:00:00:01\n",
		"sys/devices/virtual/net/dummy0/addr_assign_type":                            "0\n",
	})
	for name, target := range map[string]string{
		"sys/class/net/eth0":   "../../devices/pci0000:00/0000:00:1c.0/0000:03:00.0/net/eth0",
		"sys/class/net/usb0":   "../../devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/net/usb0",
		"sys/class/net/dummy0": "../../devices/virtual/net/dummy0",
		"sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0/net/eth0/device": "../../../0000:03:00.0",
		"sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0/driver":          "../../../../bus/pci/drivers/e1000e",
	} {
		root[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
	}
	for name, want := range map[string]bootconf.Device{
		"eth0": {Name: "eth0", Permanent: "52:54:00:ab:cd:ef", Address: "52:54:00:ab:cd:ef", Path: "pci-0000:03:00.0",
			Driver: "e1000e"},
		"usb0":   {Name: "usb0", Address: "02:00:00:00:00:01"},
		"dummy0": {Name: "dummy0", Address: "66:00:00:00:00:01"},
		"none":   {Name: "none"},
		"../x":   {Name: "../x"},
	} {
		if diff := cmp.Diff(want, bootconf.FindDevice(root, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What is written into a .link file reads back as the same value, for each setting and both ends of
// its range.
func TestLinkKeys(t *testing.T) {
	seen := 0
	for _, d := range knob.Catalogue().All() {
		id := knob.ID(strings.Replace(string(d.Pattern), "*", "eth0", 1))
		key, ok := bootconf.LinkKeyOf(id)
		if !ok {
			continue
		}
		seen++
		for _, v := range []knob.Value{"on", "off", "0", "1", "68", "65536", "4294967295", "max", "", "-1"} {
			text, ok := key.Text(v)
			if _, err := d.Normalize(v); err != nil || !ok {
				continue
			}
			if back, ok := key.Value(text); !ok || back != v {
				t.Errorf("%s = %s: %s=%s reads back as %q, %v", id, v, key.Name, text, back, ok)
			}
		}
	}
	if seen < 35 {
		t.Errorf("only %d settings", seen)
	}
	usecs, _ := bootconf.LinkKeyOf("ethtool:eth0/coalesce.rx-usecs")
	for text, want := range map[string]knob.Value{"50us": "50", "50 usec": "50", "2ms": "2000", "1": "1000000",
		"1s": "1000000", "max": "", "": ""} {
		if v, ok := usecs.Value(text); v != want && ok || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, v, ok)
		}
	}
	mtu, _ := bootconf.LinkKeyOf("link:eth0/mtu")
	if v, ok := mtu.Value("9K"); v != "9216" || !ok {
		t.Errorf("9K: %q, %v", v, ok)
	}
}

func TestInterfaces(t *testing.T) {
	eth0 := bootconf.Device{Name: "eth0", Permanent: "52:54:00:12:34:56", Address: "52:54:00:12:34:56", Driver: "e1000"}
	for name, c := range map[string]struct {
		files map[string]string
		id    knob.ID
		want  string // FILE:LINE VALUE BY
	}{
		"link file": {map[string]string{
			"usr/lib/systemd/network/99-default.link": "[Match]\nOriginalName=*\n[Link]\nGenericReceiveOffload=no\n"},
			"ethtool:eth0/feature.rx-gro", "/usr/lib/systemd/network/99-default.link:4 off systemd-udevd"},
		"only the first": {map[string]string{
			"usr/lib/systemd/network/99-default.link": "[Match]\nOriginalName=*\n[Link]\nMTUBytes=1400\n",
			"etc/systemd/network/10-a.link":           "[Match]\nDriver=e10*\n[Link]\nWakeOnLan=off\n"},
			"link:eth0/mtu", ""},
		"not this driver": {
			map[string]string{"etc/systemd/network/10-a.link": "[Match]\nDriver=!e1000\n[Link]\nMTUBytes=1400\n"},
			"link:eth0/mtu", ""},
		"NetworkManager's default": {map[string]string{"usr/sbin/NetworkManager": "",
			"etc/NetworkManager/conf.d/mtu.conf": "[connection-a]\nmatch-device=interface-name:eth*\nethernet.mtu=9000\n"},
			"link:eth0/mtu", "/etc/NetworkManager/conf.d/mtu.conf:3 9000 NetworkManager"},
		"its connection wins": {map[string]string{"usr/sbin/NetworkManager": "",
			"etc/NetworkManager/conf.d/mtu.conf": "[connection]\nethernet.mtu=9000\n",
			"etc/NetworkManager/system-connections/a.nmconnection": "[connection]\ntype=ethernet\n[ethernet]\n" +
				"mac-address=52:54:00:12:34:56\nmtu=1400\n"},
			"link:eth0/mtu", "/etc/NetworkManager/system-connections/a.nmconnection:5 1400 NetworkManager"},
		"an offload of it": {map[string]string{"usr/sbin/NetworkManager": "",
			"run/NetworkManager/system-connections/a": "[connection]\ntype=ethernet\ninterface-name=eth0\n[ethtool]\n" +
				"feature-gro=false\n"},
			"ethtool:eth0/feature.rx-gro", "/run/NetworkManager/system-connections/a:5 off NetworkManager"},
		"its connection, of what it leaves to ifupdown": {map[string]string{"usr/sbin/NetworkManager": "",
			"sbin/ifup": "", "etc/network/interfaces": "iface eth0 inet dhcp\n",
			"etc/NetworkManager/system-connections/a.nmconnection": "[connection]\ntype=ethernet\n[ethernet]\nmtu=1400\n"},
			"link:eth0/mtu", ""},
		"its connection, where it does not know ifupdown": {map[string]string{"usr/sbin/NetworkManager": "",
			"sbin/ifup": "", "etc/network/interfaces": "iface eth0 inet dhcp\n",
			"etc/NetworkManager/NetworkManager.conf":               "[main]\nplugins=keyfile\n",
			"etc/NetworkManager/system-connections/a.nmconnection": "[connection]\ntype=ethernet\n[ethernet]\nmtu=1400\n"},
			"link:eth0/mtu", "/etc/NetworkManager/system-connections/a.nmconnection:4 1400 NetworkManager"},
		"not installed": {
			map[string]string{"etc/NetworkManager/conf.d/mtu.conf": "[connection]\nethernet.mtu=9000\n"},
			"link:eth0/mtu", ""},
		"rule that runs": {
			map[string]string{"etc/udev/rules.d/70-x.rules": "SUBSYSTEM==\"net\", NAME==\"eth0\", " +
				"RUN+=\"/sbin/ethtool -G $name rx 4096 tx 512\"\n"},
			"ethtool:eth0/ring.tx", "/etc/udev/rules.d/70-x.rules:1 512 udev"},
		"rule for others": {
			map[string]string{"etc/udev/rules.d/70-x.rules": "SUBSYSTEM==\"net\", DRIVERS!=\"e1000\", ATTR{mtu}=\"9000\"\n"},
			"link:eth0/mtu", ""},
		"interfaces with ip": {
			map[string]string{"etc/network/interfaces": "iface eth1 inet dhcp\n mtu 1300\n" +
				"iface eth0 inet static\n up ip link set dev $IFACE txqueuelen 2000\nauto eth0\n mtu 1200\n"},
			"link:eth0/txqueuelen", "/etc/network/interfaces:4 2000 ifupdown"},
		"a script of others": {map[string]string{"etc/network/if-up.d/x": "#!/bin/sh\nethtool -K eth0 gro off\n"},
			"ethtool:eth0/feature.rx-gro", ""},
		"a script of ours": {
			map[string]string{"etc/network/if-up.d/linerate-0007": "#!/bin/sh\n# linerate change 0007: x\n" +
				"exec /usr/sbin/ethtool -K eth0 gro off\n"},
			"ethtool:eth0/feature.rx-gro", "/etc/network/if-up.d/linerate-0007:3 off ifupdown"},
	} {
		got := ""
		if l, ok := bootconf.Read(files(c.files), eth0).Line(c.id); ok {
			got = fmtLine(l)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// No text of any of the files makes the reader fail, and every line it returns has a place.
func FuzzInterfaces(f *testing.F) {
	f.Add("[Match]\nOriginalName=*\n[Link]\nMTUBytes=9K\n", "SUBSYSTEM==\"net\", ATTR{mtu}=\"9000\"\n",
		"iface eth0 inet dhcp\nmtu 1\nsource *\n", "[connection]\ntype=ethernet\n[ethtool]\nring-rx=1\n")
	f.Add("[Link]\n=\n[", "RUN+=\"ethtool -G\"", "up ethtool -K", "[ethtool]\n-=\n")
	f.Fuzz(func(t *testing.T, link, rules, interfaces, connection string) {
		root := files(map[string]string{
			"etc/systemd/network/a.link": link, "etc/systemd/network/a.network": link,
			"etc/udev/rules.d/a.rules": rules, "etc/network/interfaces": interfaces,
			"usr/sbin/NetworkManager": "", "etc/NetworkManager/NetworkManager.conf": connection,
			"etc/NetworkManager/system-connections/a": connection,
			"etc/tuned/active_profile":                "a", "etc/tuned/a/tuned.conf": connection,
		})
		c := bootconf.Read(root, bootconf.Device{Name: "eth0", Address: "52:54:00:12:34:56"})
		for _, id := range []knob.ID{"link:eth0/mtu", "ethtool:eth0/ring.rx", "ethtool:eth0/feature.rx-gro",
			"queue:eth0/rx-0/rps_cpus"} {
			if l, ok := c.Line(id); ok && (l.File == "" || l.Number < 1 || l.By == "") {
				t.Fatalf("%s: %+v", id, l)
			}
		}
		bootconf.LinkOf(root, bootconf.Device{Name: "eth0"})
	})
}

func fmtLine(l bootconf.Line) string {
	return fmt.Sprintf("%s:%d %s %s", l.File, l.Number, l.Value, l.By)
}

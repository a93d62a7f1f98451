package persist_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/persist"
)

// debian is a host with systemd 252, ethtool, and nothing configured.
func debian(more map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range map[string]string{
		"usr/lib/systemd/systemd-udevd":                             "",
		"usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so": "",
		"usr/lib/systemd/network/99-default.link": "[Match]\nOriginalName=*\n\n[Link]\n" +
			"NamePolicy=keep kernel database onboard slot path\nMACAddressPolicy=persistent\n",
		"usr/lib/modules/6.1.0-30-amd64/modules.builtin": "kernel/net/ipv4/tcp_cubic.ko\n",
		"usr/sbin/ethtool":                 "",
		"usr/sbin/tc":                      "",
		"usr/sbin/ip":                      "",
		"usr/lib/sysctl.d/50-default.conf": "net.core.default_qdisc = fq_codel\n",
	} {
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	for name, text := range more {
		if text == "-" {
			delete(m, name)
			continue
		}
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return m
}

// card is what the tests' interfaces are: eth0 a NIC, dummy0 virtual.
func card(name string) bootconf.Device {
	if name == "eth0" {
		return bootconf.Device{Name: name, Permanent: "52:54:00:12:34:56", Address: "52:54:00:12:34:56",
			Path: "pci-0000:00:03.0", Driver: "e1000"}
	}
	if name == "usb0" {
		return bootconf.Device{Name: name, Address: "02:00:00:00:00:01", Driver: "cdc_ether"}
	}
	if name == "enp4s0" {
		// an administrator gave it an address
		return bootconf.Device{Name: name, Address: "02:00:00:00:00:02", Path: "pci-0000:04:00.0", Driver: "igc"}
	}
	return bootconf.Device{Name: name}
}

func change(id string, k knob.ID, to knob.Value) journal.Change {
	return journal.Change{ID: id, Knob: k, To: to, From: "x", State: journal.Committed}
}

// head is how files of ours begin.
func head(id, k, to string) string {
	return fmt.Sprintf("# linerate change %s: %s = %s\n# `linerate undo %s` takes this file out again.\n",
		id, k, to, id)
}

const card0 = `DRIVERS=="?*", ATTR{address}=="52:54:00:12:34:56", ATTR{type}=="1"`

func TestFormats(t *testing.T) {
	interfaces := "auto eth0\niface eth0 inet dhcp\n"
	for name, c := range map[string]struct {
		host     map[string]string
		managers []string
		knob, to string
		format   persist.Format
		path     string
		text     string // behind the head
		mode     fs.FileMode
	}{
		"sysctl": {knob: "sysctl:net.ipv4.tcp_rmem", to: "4096 131072 33554432", format: persist.Sysctl,
			path: "/etc/sysctl.d/90-linerate-0007.conf", text: "net.ipv4.tcp_rmem = 4096 131072 33554432\n"},
		"sysctl of a vlan": {knob: "sysctl:net.ipv4.conf.eth0/100.rp_filter", to: "2", format: persist.Sysctl,
			path: "/etc/sysctl.d/90-linerate-0007.conf", text: "net.ipv4.conf.eth0/100.rp_filter = 2\n"},
		"module": {knob: "module:e1000/InterruptThrottleRate", to: "3000,3000", format: persist.Modprobe,
			path: "/etc/modprobe.d/90-linerate-0007.conf", text: "options e1000 InterruptThrottleRate=3000,3000\n"},
		"module that is built in": {knob: "module:tcp_cubic/hystart", to: "0", format: persist.ByHand},
		"queue": {knob: "queue:eth0/rx-0/rps_cpus", to: "f", format: persist.Udev,
			path: "/etc/udev/rules.d/90-linerate-0007.rules", text: `ACTION=="add", SUBSYSTEM=="net", ` + card0 +
				`, ATTR{queues/rx-0/rps_cpus}="f"` + "\n"},
		"limit of a queue of a virtual interface": {knob: "queue:dummy0/tx-1/bql_limit_max", to: "3000",
			format: persist.Udev,
			path:   "/etc/udev/rules.d/90-linerate-0007.rules",
			text: `ACTION=="add", SUBSYSTEM=="net", KERNEL=="dummy0", ` +
				`ATTR{queues/tx-1/byte_queue_limits/limit_max}="3000"` + "\n"},
		"queue length without systemd": {host: map[string]string{"usr/lib/systemd/systemd-udevd": "-",
			"sbin/udevd": ""}, knob: "link:eth0/txqueuelen", to: "2000",
			format: persist.Udev, path: "/etc/udev/rules.d/90-linerate-0007.rules",
			text: `ACTION=="add", SUBSYSTEM=="net", ` + card0 + `, ATTR{tx_queue_len}="2000"` + "\n"},
		"no udev": {host: map[string]string{"usr/lib/systemd/systemd-udevd": "-"}, knob: "link:eth0/txqueuelen",
			to: "2000", format: persist.ByHand},
		"mtu of NetworkManager": {managers: []string{"NetworkManager"}, knob: "link:eth0/mtu", to: "9000",
			format: persist.NetworkManager,
			path:   "/etc/NetworkManager/conf.d/90-linerate-0007.conf",
			text:   "[connection-linerate-eth0]\nmatch-device=interface-name:eth0\nethernet.mtu=9000\n"},
		"private flag": {knob: "ethtool:eth0/flag.legacy rx", to: "on", format: persist.Udev,
			path: "/etc/udev/rules.d/90-linerate-0007.rules",
			text: `ACTION=="add", SUBSYSTEM=="net", ` + card0 +
				`, RUN+="/usr/sbin/ethtool --set-priv-flags $name 'legacy rx' on"` + "\n"},
		"private flag under ifupdown": {host: map[string]string{"etc/network/interfaces": interfaces, "sbin/ifup": ""},
			knob: "ethtool:eth0/flag.legacy rx", to: "on",
			format: persist.Ifupdown, path: "/etc/network/if-up.d/linerate-0007", mode: 0o755,
			text: "[ \"$IFACE\" = eth0 ] || exit 0\nexec /usr/sbin/ethtool --set-priv-flags eth0 'legacy rx' on\n"},
		"discipline under NetworkManager": {managers: []string{"NetworkManager"}, knob: "qdisc:eth0/root", to: "fq",
			format: persist.NetworkManager,
			path:   "/etc/NetworkManager/dispatcher.d/90-linerate-0007", mode: 0o755,
			text: "[ \"$1\" = eth0 ] && [ \"$2\" = up ] || exit 0\nexec /usr/sbin/tc qdisc replace dev eth0 root fq\n"},
		"discipline of what NetworkManager leaves to ifupdown": {managers: []string{"NetworkManager"},
			host: map[string]string{"etc/network/interfaces": interfaces, "sbin/ifup": "",
				"etc/NetworkManager/NetworkManager.conf": "[main]\nplugins=ifupdown,keyfile\n\n[ifupdown]\nmanaged=false\n"},
			knob: "qdisc:eth0/root", to: "fq", format: persist.Ifupdown,
			path: "/etc/network/if-up.d/linerate-0007", mode: 0o755,
			text: "[ \"$IFACE\" = eth0 ] || exit 0\nexec /usr/sbin/tc qdisc replace dev eth0 root fq\n"},
		"discipline of what NetworkManager takes from ifupdown": {managers: []string{"NetworkManager"},
			host: map[string]string{"etc/network/interfaces": interfaces, "sbin/ifup": "",
				"etc/NetworkManager/conf.d/managed.conf": "[ifupdown]\nmanaged=true\n"},
			knob: "qdisc:eth0/root", to: "fq",
			format: persist.NetworkManager,
			path:   "/etc/NetworkManager/dispatcher.d/90-linerate-0007", mode: 0o755,
			text: "[ \"$1\" = eth0 ] && [ \"$2\" = up ] || exit 0\nexec /usr/sbin/tc qdisc replace dev eth0 root fq\n"},
		"ring of an old systemd": {
			host: map[string]string{"usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so": "-",
				"lib/systemd/libsystemd-shared-241.so": ""},
			knob: "ethtool:eth0/ring.rx", to: "4096", format: persist.Udev,
			path: "/etc/udev/rules.d/90-linerate-0007.rules",
			text: `ACTION=="add", SUBSYSTEM=="net", ` + card0 + `, RUN+="/usr/sbin/ethtool -G $name rx 4096"` + "\n"},
		"no tool": {host: map[string]string{"usr/sbin/ethtool": "-"}, knob: "ethtool:eth0/rxhash.udp4", to: "sdfn",
			format: persist.ByHand},
		"governor": {knob: "cpu:3/scaling_governor", to: "performance", format: persist.Udev,
			path: "/etc/udev/rules.d/90-linerate-0007.rules",
			text: `ACTION=="add|change", SUBSYSTEM=="cpu", KERNEL=="cpu3", ATTR{cpufreq/scaling_governor}="performance"` + "\n"},
		"disk": {knob: "block:sda/read_ahead_kb", to: "4096", format: persist.Udev,
			path: "/etc/udev/rules.d/90-linerate-0007.rules",
			text: `ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", ATTR{queue/read_ahead_kb}="4096"` + "\n"},
		"route":     {knob: "route:10.0.0.0/8/initcwnd", to: "20", format: persist.ByHand},
		"interrupt": {knob: "irq:45/affinity", to: "3", format: persist.ByHand},
		"mount":     {knob: "nfs:/mnt/x/rsize", to: "1048576", format: persist.ByHand},
		"parameter": {knob: "qdisc:eth0/fq.flow_limit", to: "200", format: persist.ByHand},
	} {
		t.Run(name, func(t *testing.T) {
			p := persist.New(persist.Host{Root: debian(c.host), Device: card, Managers: c.managers})
			s := p.Plan(change("0007", knob.ID(c.knob), knob.Value(c.to)))
			if s.Format != c.format || len(s.Conflicts) > 0 {
				t.Fatalf("%+v", s)
			}
			if c.format == persist.ByHand {
				if len(s.Files) > 0 || s.Line == "" || !strings.Contains(s.Line, c.to) &&
					!strings.HasPrefix(c.knob, "irq") && !strings.HasPrefix(c.knob, "qdisc") {
					t.Errorf("%+v", s)
				}
				return
			}
			want := journal.File{Path: c.path, Content: head("0007", c.knob, c.to) + c.text, Mode: 0o644}
			if c.mode != 0 {
				want.Mode, want.Content = c.mode, "#!/bin/sh\n"+want.Content
			}
			if diff := cmp.Diff([]journal.File{want}, s.Files); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHiddenManagers: where /proc hides the processes, the plan says that a manager may not have
// been seen, unless the one that matters was found in another way.
func TestHiddenManagers(t *testing.T) {
	for _, managers := range [][]string{nil, {"NetworkManager"}} {
		p := persist.New(persist.Host{Root: debian(nil), Device: card, Managers: managers, Hidden: true})
		s := p.Plan(change("0007", "link:eth0/mtu", "9000"))
		said := slices.ContainsFunc(s.Notes, func(n string) bool {
			return strings.HasPrefix(n, "linerate cannot see what manages eth0")
		})
		if said != (managers == nil) || len(s.Files) == 0 {
			t.Errorf("%q: %+v", managers, s)
		}
	}
}

// Only the first .link file that matches counts, so what is added has to be added to that one.
func TestLinkFiles(t *testing.T) {
	const own = "/etc/systemd/network/60-linerate-eth0.link"
	base := "# Made by linerate for its changes of eth0, and taken out with the last of them: " +
		"only the first .link file that matches counts.\n" +
		"# The settings are those of /usr/lib/systemd/network/99-default.link, which applies to other interfaces as well.\n" +
		"[Match]\nPermanentMACAddress=52:54:00:12:34:56\n\n[Link]\n" +
		"NamePolicy=keep kernel database onboard slot path\nMACAddressPolicy=persistent\n"
	for name, c := range map[string]struct {
		host   map[string]string
		device string
		shared string // path of the copy
		dir    string
		notes  int
		match  string
	}{
		"general": {device: "eth0", shared: own, dir: own + ".d"},
		"of this card": {map[string]string{
			"etc/systemd/network/10-lan.link": "[Match]\nMACAddress=52-54-00-12-34-56\n[Link]\nName=eth0\n"},
			"eth0", "", "/etc/systemd/network/10-lan.link.d", 1, ""},
		"of another card": {
			map[string]string{"etc/systemd/network/10-wan.link": "[Match]\nMACAddress=52:54:00:00:00:01\n[Link]\nName=wan\n"},
			"eth0", own, own + ".d", 0, ""},
		"general and early": {
			map[string]string{"etc/systemd/network/10-all.link": "[Match]\nDriver=e1000\n[Link]\nMTUBytes=1400\n"},
			"eth0", "/etc/systemd/network/00-linerate-eth0.link",
			"/etc/systemd/network/00-linerate-eth0.link.d", 0, ""},
		"perhaps": {
			map[string]string{"etc/systemd/network/10-vm.link": "[Match]\nVirtualization=kvm\n[Link]\nMTUBytes=1400\n"},
			"eth0", own, own + ".d", 1, ""},
		"hidden": {map[string]string{"etc/systemd/network/99-default.link": "\n"}, "eth0", own,
			own + ".d", 0, ""},
		"virtual": {device: "dummy0", shared: "/etc/systemd/network/60-linerate-dummy0.link",
			dir: "/etc/systemd/network/60-linerate-dummy0.link.d", match: "OriginalName=dummy0\n"},
		"behind USB": {device: "usb0", shared: "/etc/systemd/network/60-linerate-usb0.link",
			dir:   "/etc/systemd/network/60-linerate-usb0.link.d",
			match: "MACAddress=02:00:00:00:00:01\nDriver=cdc_ether\n"},
		"with another address": {device: "enp4s0", shared: "/etc/systemd/network/60-linerate-enp4s0.link",
			dir:   "/etc/systemd/network/60-linerate-enp4s0.link.d",
			match: "Path=pci-0000:04:00.0\n"},
		"netplan's, in /run": {
			map[string]string{"run/systemd/network/10-netplan-eth0.link": "[Match]\nOriginalName=eth0\n[Link]\nMTUBytes=1400\n"},
			"eth0", "", "/etc/systemd/network/10-netplan-eth0.link.d", 1, ""},
		"with drop-in of its": {
			map[string]string{"usr/lib/systemd/network/99-default.link.d/a.conf": "[Link]\nAlternativeNamesPolicy=mac\n"},
			"eth0", own, own + ".d", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := persist.New(persist.Host{Root: debian(c.host), Device: card})
			first := p.Plan(change("0007", knob.ID("ethtool:"+c.device+"/ring.rx"), "4096"))
			second := p.Plan(change("0008", knob.ID("ethtool:"+c.device+"/coalesce.rx-usecs"), "50"))
			if first.Format != persist.Link || second.Format != persist.Link || len(first.Notes) != c.notes ||
				len(first.Conflicts)+len(second.Conflicts) > 0 {
				t.Fatalf("%+v\n%+v", first, second)
			}
			last := first.Files[len(first.Files)-1]
			want := journal.File{Path: c.dir + "/90-linerate-0007.conf", Mode: 0o644,
				Content: head("0007", "ethtool:"+c.device+"/ring.rx", "4096") + "[Link]\nRxBufferSize=4096\n"}
			if diff := cmp.Diff(want, last); diff != "" {
				t.Error(diff)
			}
			if text := second.Files[len(second.Files)-1]; text.Path != c.dir+"/90-linerate-0008.conf" ||
				!strings.HasSuffix(text.Content, "[Link]\nRxCoalesceSec=50us\n") {
				t.Errorf("%+v", text)
			}
			if c.shared == "" {
				if len(first.Files) != 1 {
					t.Errorf("%+v", first.Files)
				}
				return
			}
			// Both have the copy in common, to the byte: the journal asks for that.
			if len(first.Files) != 2 || first.Files[0].Path != c.shared || first.Files[0] != second.Files[0] {
				t.Fatalf("%+v\n%+v", first.Files, second.Files)
			}
			if name == "general" && first.Files[0].Content != base {
				t.Error(cmp.Diff(base, first.Files[0].Content))
			}
			if text := first.Files[0].Content; !strings.Contains(text, "[Match]\n"+c.match) {
				t.Errorf("want %s in %s", c.match, text)
			}
			if text := first.Files[0].Content; name == "with drop-in of its" &&
				!strings.Contains(text, "AlternativeNamesPolicy=mac\n") || c.device == "dummy0" &&
				!strings.Contains(text, "OriginalName=dummy0\n") {
				t.Error(text)
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	const nm = "usr/sbin/NetworkManager"
	for name, c := range map[string]struct {
		host     map[string]string
		knob, to string
		want     string // FILE:LINE VALUE by BY; empty: none
		notes    int
	}{
		"nothing": {nil, "sysctl:net.ipv4.tcp_rmem", "1 2 3", "", 0},
		"an earlier file": {map[string]string{"etc/sysctl.d/10-a.conf": "net.ipv4.tcp_rmem = 4 5 6\n"},
			"sysctl:net.ipv4.tcp_rmem", "1 2 3", "", 0},
		"a later file": {map[string]string{"etc/sysctl.d/99-a.conf": "\nnet.ipv4.tcp_rmem = 4 5 6\n"},
			"sysctl:net.ipv4.tcp_rmem", "1 2 3", "/etc/sysctl.d/99-a.conf:2 4 5 6 by sysctl", 0},
		"the same value": {map[string]string{"etc/sysctl.d/99-a.conf": "net.ipv4.tcp_rmem = 1 2  3\n"},
			"sysctl:net.ipv4.tcp_rmem", "1 2 3", "", 1},
		"sysctl.conf": {map[string]string{"etc/sysctl.conf": "net/ipv4/tcp_sack=0\n"},
			"sysctl:net.ipv4.tcp_sack", "1", "/etc/sysctl.conf:1 0 by sysctl", 0},
		"a star does not": {map[string]string{"etc/sysctl.d/99-a.conf": "net.ipv4.conf.*.rp_filter = 2\n"},
			"sysctl:net.ipv4.conf.eth0.rp_filter", "1", "", 0},
		"TuneD re-applies": {map[string]string{"etc/tuned/active_profile": "x",
			"etc/tuned/x/tuned.conf": "[sysctl]\nnet.ipv4.tcp_sack=0\n"}, "sysctl:net.ipv4.tcp_sack", "1", "", 0},
		"TuneD and a card": {map[string]string{"etc/tuned/active_profile": "x",
			"etc/tuned/x/tuned.conf": "[net]\nring=rx 512 tx 1024\n"}, "ethtool:eth0/ring.rx", "4096",
			"/etc/tuned/x/tuned.conf:2 512 by tuned", 0},
		"modprobe": {map[string]string{"etc/modprobe.d/z.conf": "options e1000 copybreak=0\n"},
			"module:e1000/copybreak", "256", "/etc/modprobe.d/z.conf:1 0 by modprobe", 0},
		"a connection": {map[string]string{nm: "",
			"etc/NetworkManager/system-connections/lan.nmconnection": "[connection]\ntype=ethernet\n" +
				"interface-name=eth0\n[ethtool]\nring-rx=512\n"}, "ethtool:eth0/ring.rx", "4096",
			"/etc/NetworkManager/system-connections/lan.nmconnection:5 512 by NetworkManager", 0},
		"another connection": {map[string]string{nm: "",
			"etc/NetworkManager/system-connections/lan.nmconnection": "[connection]\ntype=ethernet\n" +
				"interface-name=eth1\n[ethtool]\nring-rx=512\n"}, "ethtool:eth0/ring.rx", "4096", "", 0},
		"networkd": {
			map[string]string{"etc/systemd/network/lan.network": "[Match]\nName=eth*\n[Link]\nMTUBytes=1400\n"},
			"link:eth0/mtu", "9000", "/etc/systemd/network/lan.network:4 1400 by systemd-networkd", 0},
		"ifupdown's mtu": {map[string]string{"etc/network/interfaces": "source interfaces.d/*\n",
			"etc/network/interfaces.d/eth0": "iface eth0 inet dhcp\n  mtu 1400\n"}, "link:eth0/mtu", "9000",
			"/etc/network/interfaces.d/eth0:2 1400 by ifupdown", 0},
		"ifupdown's command": {
			map[string]string{"etc/network/interfaces": "iface eth0 inet dhcp\n" +
				"  post-up /sbin/ethtool -K $IFACE gro off tso off\n"},
			"ethtool:eth0/feature.rx-gro", "on", "/etc/network/interfaces:2 off by ifupdown", 0},
		"a udev rule": {
			map[string]string{"etc/udev/rules.d/99-rps.rules": `SUBSYSTEM=="net", ACTION=="add", ` +
				`KERNEL=="eth*", ATTR{queues/rx-0/rps_cpus}="3"` + "\n"},
			"queue:eth0/rx-0/rps_cpus", "f", "/etc/udev/rules.d/99-rps.rules:1 3 by udev", 0},
		"a rule of another": {
			map[string]string{"etc/udev/rules.d/99-rps.rules": `SUBSYSTEM=="net", ` +
				`ATTR{address}=="00:00:00:00:00:01", ATTR{queues/rx-0/rps_cpus}="3"` + "\n"},
			"queue:eth0/rx-0/rps_cpus", "f", "", 0},
		"a later drop-in": {
			map[string]string{"etc/systemd/network/10-lan.link": "[Match]\nMACAddress=52:54:00:12:34:56\n",
				"etc/systemd/network/10-lan.link.d/99-z.conf": "[Link]\nRxBufferSize=512\n"}, "ethtool:eth0/ring.rx",
			"4096", "/etc/systemd/network/10-lan.link.d/99-z.conf:2 512 by systemd-udevd", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := persist.New(persist.Host{Root: debian(c.host), Device: card}).Plan(change("0007", knob.ID(c.knob),
				knob.Value(c.to)))
			got := ""
			for _, l := range s.Conflicts {
				got += fmt.Sprintf("%s:%d %s by %s", l.File, l.Number, l.Value, l.By)
			}
			if got != c.want || len(s.Notes) != c.notes || len(s.Files) == 0 {
				t.Errorf("got %q, want %q; %+v", got, c.want, s)
			}
		})
	}
}

// Every knob of the catalogue gets files that name it and that our own reader finds again, or a
// line for the user.
func TestWholeCatalogue(t *testing.T) {
	byFormat := map[persist.Format]int{}
	for _, d := range knob.Catalogue().All() {
		id := knob.ID(strings.NewReplacer(":*/rx-*", ":eth0/rx-0", ":*/tx-*", ":eth0/tx-0", "feature.*",
			"feature.rx-all", "flag.*", "flag.some", "iosched.*", "iosched.read_expire").Replace(string(d.Pattern)))
		id = knob.ID(strings.Replace(string(id), "*", map[string]string{"ethtool": "eth0", "link": "eth0",
			"qdisc": "eth0", "cpu": "0", "pci": "0000:00:03.0", "block": "sda"}[id.Kind()], 1))
		if id.Kind() == knob.KindSysctl {
			id = knob.ID(strings.Replace(string(d.Pattern), "*", "eth0", 1))
		}
		value := knob.Value("1")
		switch d.Form {
		case knob.FormSwitch:
			value = "on"
		case knob.FormInts:
			value = knob.Value(strings.TrimSpace(strings.Repeat("1 ", max(d.Count, 1))))
		case knob.FormWord:
			if value = "cubic"; len(d.Choices) > 0 {
				value = knob.Value(d.Choices[0])
			}
		}
		root := debian(nil)
		s := persist.New(persist.Host{Root: root, Device: card}).Plan(change("0007", id, value))
		byFormat[s.Format]++
		if s.Format == persist.ByHand {
			if s.Line == "" || len(s.Files) > 0 {
				t.Errorf("%s: %+v", id, s)
			}
			continue
		}
		for _, f := range s.Files {
			if !strings.HasPrefix(f.Path, "/etc/") || !strings.Contains(f.Path, "linerate") ||
				!strings.Contains(f.Content, "linerate") || !strings.HasSuffix(f.Content, "\n") {
				t.Errorf("%s: %+v", id, f)
			}
			root[strings.TrimPrefix(f.Path, "/")] = &fstest.MapFile{Data: []byte(f.Content), Mode: f.Mode}
		}
		line, ok := bootconf.Read(root, card("eth0")).Line(id)
		readBack := ok && slices.ContainsFunc(s.Files, func(f journal.File) bool { return f.Path == line.File }) &&
			d.Equal(line.Value, value)
		// Commands of ethtool whose words are not those of the knob.
		spelt := slices.Contains([]string{"eee", "fec", "link.mode"}, id.Attribute()) ||
			strings.HasPrefix(id.Attribute(), "rss.") || strings.HasPrefix(id.Attribute(), "rxhash.") ||
			strings.HasSuffix(id.Attribute(), "_size") || id.Kind() == knob.KindQdisc
		if !readBack && !spelt {
			t.Errorf("%s = %s: reads back as %+v, %v; %+v", id, value, line, ok, s.Files)
		}
	}
	t.Log(byFormat)
	for _, f := range []persist.Format{persist.Sysctl, persist.Modprobe, persist.Link, persist.Udev, persist.ByHand} {
		if byFormat[f] == 0 {
			t.Errorf("nothing in %s", f)
		}
	}
}

// A value with a line break would be a second line of our file.
func TestHostileValues(t *testing.T) {
	s := persist.New(persist.Host{Root: debian(nil), Device: card}).Plan(change("0007",
		"sysctl:net.ipv4.tcp_congestion_control", "x\nkernel.modprobe = /tmp/x"))
	if s.Format != persist.ByHand || len(s.Files) > 0 {
		t.Errorf("%+v", s)
	}
	for _, v := range []knob.Value{`a"b`, "a'b", "$(reboot)", "a;b"} {
		words, ok := persist.Command("ethtool:eth0/flag.x y", v)
		if !ok || words[len(words)-1] == string(v) {
			t.Errorf("%q: %q", v, words)
		}
	}
}

// A name that the readers of files take for a pattern would set other interfaces too.
func TestHostileNames(t *testing.T) {
	for _, id := range []knob.ID{"link:a*/mtu", "ethtool:e?h0/ring.rx", "queue:a|b/rx-0/rps_cpus", "qdisc:a,b/root",
		"sysctl:net.ipv4.conf.a[b].rp_filter"} {
		s := persist.New(persist.Host{Root: debian(nil), Device: card}).Plan(change("0007", id, "1"))
		if s.Format != persist.ByHand || len(s.Files) > 0 || !strings.Contains(s.Line, "for a pattern") {
			t.Errorf("%s: %+v", id, s)
		}
	}
}

// ethtool takes several codes as several words.
func TestFECWords(t *testing.T) {
	words, ok := persist.Command("ethtool:eth0/fec", "auto,rs")
	if want := "ethtool --set-fec eth0 encoding auto rs"; !ok || strings.Join(words, " ") != want {
		t.Errorf("%q", words)
	}
}

type values map[knob.ID]knob.Value

func (v values) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	if x, ok := v[id]; ok {
		return x, nil
	}
	return "", fmt.Errorf("read %s: %w", id, fs.ErrNotExist)
}

func TestCheck(t *testing.T) {
	const file = "/etc/sysctl.d/90-linerate-0007.conf"
	const ours = "net.ipv4.tcp_sack = 0\n"
	for name, c := range map[string]struct {
		etc    map[string]string
		now    values
		boot   string
		later  *journal.Change
		result persist.Result
		why    string
		setBy  string
	}{
		"held": {map[string]string{file[1:]: ours}, values{"sysctl:net.ipv4.tcp_sack": "0"}, "2", nil,
			persist.Held, "", file},
		"waiting": {map[string]string{file[1:]: ours}, values{"sysctl:net.ipv4.tcp_sack": "1"}, "1", nil,
			persist.Waiting, "", file},
		"overridden": {map[string]string{file[1:]: ours, "etc/sysctl.conf": "net.ipv4.tcp_sack=1\n"},
			values{"sysctl:net.ipv4.tcp_sack": "1"}, "2", nil, persist.Lost, "/etc/sysctl.conf:1 sets it to 1 (sysctl)",
			"/etc/sysctl.conf"},
		"refused": {map[string]string{file[1:]: ours}, values{"sysctl:net.ipv4.tcp_sack": "1"}, "2", nil,
			persist.Lost, "at work here: tuned", file},
		"file gone": {nil, values{"sysctl:net.ipv4.tcp_sack": "0"}, "1", nil, persist.Lost,
			"no longer there: " + file, ""},
		"file edited": {map[string]string{file[1:]: "net.ipv4.tcp_sack = 1\n"},
			values{"sysctl:net.ipv4.tcp_sack": "1"}, "2", nil, persist.Lost, "edited since: " + file, file},
		"knob gone": {map[string]string{file[1:]: ours}, nil, "2", nil, persist.Lost, "file does not exist", file},
		"a trial on top": {map[string]string{file[1:]: ours}, values{"sysctl:net.ipv4.tcp_sack": "1"}, "2",
			&journal.Change{ID: "0008", Knob: "sysctl:net.ipv4.tcp_sack", State: journal.Trial, BootID: "2"},
			persist.Covered, "change 0008 stands on top", file},
		"one of old": {map[string]string{file[1:]: ours}, values{"sysctl:net.ipv4.tcp_sack": "0"}, "3",
			&journal.Change{ID: "0008", Knob: "sysctl:net.ipv4.tcp_sack", State: journal.Committed, BootID: "2"},
			persist.Held, "", file},
	} {
		t.Run(name, func(t *testing.T) {
			root := debian(c.etc)
			all := []journal.Change{{ID: "0007", Knob: "sysctl:net.ipv4.tcp_sack", To: "0", State: journal.Persisted,
				Persisted: true, BootID: "1", Files: []string{file}},
				{ID: "0009", Knob: "sysctl:net.ipv4.tcp_frto", State: journal.Committed}}
			if c.later != nil {
				all = append(all, *c.later)
			}
			found := persist.Checker{
				Host: persist.Host{Root: root, Device: card, Managers: []string{"tuned"}}, Knobs: c.now, BootID: c.boot,
				Kept: map[string]journal.Kept{"0007": {Root: "/",
					Files: []journal.File{{Path: file, Content: ours}}}},
				ReadFile: func(name string) ([]byte, error) { return fs.ReadFile(root, strings.TrimPrefix(name, "/")) },
			}.Check(t.Context(), all)
			if len(found) != 1 || found[0].Result != c.result || !strings.Contains(found[0].Why, c.why) ||
				c.why == "" && found[0].Why != "" {
				t.Fatalf("%+v", found)
			}
			if by := found[0].SetBy; c.setBy == "" && by != nil || c.setBy != "" && (by == nil || by.File != c.setBy) {
				t.Errorf("set by %+v", by)
			}
		})
	}
}

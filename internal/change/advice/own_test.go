package advice_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/advice"
)

// TestReadsItsOwnExports reads the goldens of package export: every setting of a set is found in
// each format, with the value that the set has, and nothing of the engine is taken for one.
func TestReadsItsOwnExports(t *testing.T) {
	const dir = "../export/testdata"
	for set, want := range map[string][]string{
		"plain": {"sysctl:net.core.netdev_max_backlog=4000", "sysctl:net.ipv4.tcp_rmem=4096 131072 33554432"},
		"server": {
			"block:sda/read_ahead_kb=4096", "cpu:3/scaling_governor=performance",
			"ethtool:eth0/channels.combined=4", "ethtool:eth0/coalesce.adaptive-rx=off", "ethtool:eth0/coalesce.rx-usecs=50",
			"ethtool:eth0/eee=off", "ethtool:eth0/feature.rx-gro=on", "ethtool:eth0/feature.tx-tcp-segmentation=on",
			"ethtool:eth0/flag.legacy rx=off", "ethtool:eth0/pause.rx=off", "ethtool:eth0/ring.rx=4096",
			"ethtool:eth0/ring.tx=1024", "ethtool:eth0/tunable.rx-copybreak=0",
			"link:eth0/mtu=9000", "link:eth0/threaded=1", "link:eth0/txqueuelen=2000",
			"module:e1000/InterruptThrottleRate=8000", "module:e1000/RxIntDelay=8", "module:intel_idle/max_cstate=1",
			"module:tcp_cubic/hystart=0",
			"qdisc:eth0/fq.flow_limit=400", "qdisc:eth0/root=fq",
			"queue:eth0/rx-0/rps_cpus=f", "queue:eth0/tx-0/bql_limit_max=500000",
			"route:2001:db8::/32/congctl=bbr", "route:default/initcwnd=30",
			"sysctl:net.core.netdev_max_backlog=4000", "sysctl:net.ipv4.conf.eth1/100.rp_filter=2",
			"sysctl:net.ipv4.tcp_rmem=4096 131072 33554432",
		},
	} {
		for _, file := range []string{"ansible/linerate-export.yml", "nixos/linerate-export.nix", "shell/linerate-export.sh",
			"tuned/tuned.conf"} {
			data, err := os.ReadFile(filepath.Join(dir, set, file))
			if err != nil {
				t.Fatal(err)
			}
			read, err := advice.Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range read.Settings {
				if one := s.Knob + "=" + s.Value; !slices.Contains(got, one) {
					got = append(got, one)
				}
			}
			slices.Sort(got)
			missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(got, w) })
			// Each format leaves out the options of modules that it cannot set.
			switch file {
			case "ansible/linerate-export.yml", "tuned/tuned.conf":
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == "module:intel_idle/max_cstate=1" })
			case "shell/linerate-export.sh":
				missing = slices.DeleteFunc(missing, func(m string) bool {
					return m == "module:intel_idle/max_cstate=1" || strings.HasPrefix(m, "module:e1000/")
				})
			}
			extra := slices.DeleteFunc(got, func(g string) bool { return slices.Contains(want, g) })
			if len(missing) > 0 || len(extra) > 0 || len(read.Unread) > 0 {
				t.Errorf("%s of %s: not read %q; read beside %q; lines not understood: %d", file, set, missing, extra,
					len(read.Unread))
			}
		}
	}
}

// TestReadsItsOwnPersistedFiles reads heads of files as persist writes them. The line below counts
// where the file has one that is read: a user may have edited it.
func TestReadsItsOwnPersistedFiles(t *testing.T) {
	const head = "# linerate change 0003: %s\n# `linerate undo 0003` takes this file out again.\n"
	for name, c := range map[string]struct{ head, body, want string }{
		"sysctl.d": {"sysctl:net.ipv4.tcp_sack = 1", "net.ipv4.tcp_sack = 1\n", "sysctl:net.ipv4.tcp_sack=1"},
		"edited":   {"sysctl:net.ipv4.tcp_sack = 1", "net.ipv4.tcp_sack = 0\n", "sysctl:net.ipv4.tcp_sack=0"},
		"link": {"ethtool:eth0/ring.rx = 4096", "[Match]\nPermanentMACAddress=52:54:00:12:34:56\n\n[Link]\n" +
			"RxBufferSize=4096\n", "ethtool:eth0/ring.rx=4096"},
		"a comment alone": {"ethtool:eth0", "", ""},
	} {
		read, err := advice.Parse([]byte(strings.Replace(head, "%s", c.head, 1) + c.body))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range read.Settings {
			got += s.Knob + "=" + s.Value
		}
		if got != c.want {
			t.Errorf("%s: read %q, want %q", name, got, c.want)
		}
	}
}

package bootconf_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/knob"
)

func files(files map[string]string) fstest.MapFS {
	m := make(fstest.MapFS)
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestRead(t *testing.T) {
	b := bootconf.Read(files(map[string]string{
		"usr/lib/sysctl.d/50-default.conf": "# vendor\nnet.ipv4.conf.*.rp_filter = 2\n" +
			"-net.ipv4.conf.all.rp_filter\nnet.core.default_qdisc = fq_codel\nkernel.a.b=1\n",
		"usr/lib/sysctl.d/90-hidden.conf": "net.ipv4.tcp_sack = 0\n",
		"etc/sysctl.d/90-hidden.conf":     "\n  ; nothing any more\n",
		"etc/sysctl.d/10-first.conf":      "net/ipv4/tcp_rmem = 4096\t131072  6291456\nnet.ipv4.tcp_wmem=1 2 3\n",
		"run/sysctl.d/20-second.conf":     "net.ipv4.tcp_wmem = 4 5 6\n",
		"usr/lib/sysctl.d/99-vendor.conf": "net.ipv4.tcp_frto = 0\nnet.ipv4.tcp_wmem = 9 9 9\n",
		"etc/sysctl.d/11-early.conf":      "net.ipv4.tcp_frto = 2\n",
		"etc/sysctl.d/30-third.txt":       "net.ipv4.tcp_wmem = 7 8 9\n",
		"etc/sysctl.conf":                 "\nnet.ipv4.conf.eth0/100.rp_filter=1\nno assignment\n=\n",
		"etc/tuned/active_profile":        "mine\n",
		"etc/tuned/mine/tuned.conf": "[main]\ninclude=throughput-performance, mine\n" +
			"[sysctl]\nnet.core.somaxconn=>2048\nnet.ipv4.tcp_rmem=0 0 0\n[cpu]\nnet.core.optmem_max=5\n",
		"usr/lib/tuned/profiles/throughput-performance/tuned.conf": "[sysctl]\nnet.core.default_qdisc=fq\n" +
			"net.core.somaxconn=1\nnet.core.rmem_max=${size}\n",
		"etc/modprobe.d/nic.conf": "options e1000e InterruptThrottleRate=3000,3000 IntMode=1\n" +
			"options tcp-cubic hystart=0\nblacklist e1000\n",
		"usr/lib/modprobe.d/nic.conf": "options e1000e IntMode=0\n",
	}))
	for id, want := range map[knob.ID]bootconf.Line{
		"sysctl:net.ipv4.tcp_rmem": {File: "/etc/sysctl.d/10-first.conf", Number: 1,
			Value: "4096 131072 6291456", By: "sysctl"},
		"sysctl:net.ipv4.tcp_wmem": {File: "/run/sysctl.d/20-second.conf", Number: 1, Value: "4 5 6",
			By: "sysctl"},
		"sysctl:net.ipv4.tcp_sack":                {},
		"sysctl:net.ipv4.conf.eth0/100.rp_filter": {File: "/etc/sysctl.conf", Number: 2, Value: "1", By: "sysctl"},
		"sysctl:net.ipv4.conf.eth1.rp_filter": {File: "/usr/lib/sysctl.d/50-default.conf", Number: 2, Value: "2",
			By: "sysctl"},
		"sysctl:net.core.default_qdisc": {File: "/usr/lib/tuned/profiles/throughput-performance/tuned.conf",
			Number: 2, Value: "fq", By: "tuned"},
		"sysctl:net.core.somaxconn": {File: "/etc/tuned/mine/tuned.conf", Number: 4, Value: ">2048",
			By: "tuned"},
		"sysctl:net.core.optmem_max": {},
		"sysctl:net.core.rmem_max":   {},
		"module:e1000e/InterruptThrottleRate": {File: "/etc/modprobe.d/nic.conf", Number: 1, Value: "3000,3000",
			By: "modprobe"},
		"module:e1000e/IntMode": {File: "/etc/modprobe.d/nic.conf", Number: 1, Value: "1",
			By: "modprobe"},
		"module:tcp_cubic/hystart": {File: "/etc/modprobe.d/nic.conf", Number: 2, Value: "0",
			By: "modprobe"},
		"sysctl:net.ipv4.conf.all.rp_filter": {}, // the glob is kept away from it
		"link:eth0/mtu":                      {},
	} {
		got, ok := b.Line(id)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want.File != "") {
			t.Errorf("%s: %v (-want +got):\n%s", id, ok, diff)
		}
	}
	// By name and not by directory, unless TuneD applies the administrator's files again.
	names := map[string]string{
		"usr/lib/sysctl.d/99-vendor.conf": "net.ipv4.tcp_frto = 0\n",
		"etc/sysctl.d/11-early.conf":      "net.ipv4.tcp_frto = 2\n",
	}
	if l, _ := bootconf.Read(files(names)).Line("sysctl:net.ipv4.tcp_frto"); l.Value != "0" {
		t.Errorf("without TuneD: %+v", l)
	}
	names["etc/tuned/active_profile"] = "some\n"
	if l, _ := bootconf.Read(files(names)).Line("sysctl:net.ipv4.tcp_frto"); l.Value != "2" {
		t.Errorf("with TuneD: %+v", l)
	}
	if _, ok := bootconf.Read(fstest.MapFS{}).Line("sysctl:net.ipv4.tcp_rmem"); ok {
		t.Error("a host without configuration sets something")
	}
}

// No text of a configuration makes the reader fail. Every line it returns has a file, a line number
// and the program that applies it.
func FuzzRead(f *testing.F) {
	f.Add("net.ipv4.tcp_rmem = 1 2 3\n", "[main]\ninclude=x\n[sysctl]\na.b=1\n", "options a b=1\n")
	f.Add("-net/ipv4/*/x=1\n*.*=\n", "[sysctl\n[]\n=\n", "options options options\n")
	f.Fuzz(func(t *testing.T, sysctl, tuned, modprobe string) {
		b := bootconf.Read(files(map[string]string{
			"etc/sysctl.conf": sysctl, "etc/tuned/active_profile": "x y ../z", "etc/tuned/x/tuned.conf": tuned,
			"etc/modprobe.d/a.conf": modprobe,
		}))
		for _, d := range knob.Catalogue().All() {
			if o, ok := b.Line(d.Pattern); ok &&
				(o.File == "" || o.Number < 1 || o.By == "" || strings.Contains(string(o.Value), "\n")) {
				t.Fatalf("%s: %+v", d.Pattern, o)
			}
		}
	})
}

// TestModuleOptions has options in two files and on the command line, which wins.
func TestModuleOptions(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"etc/modprobe.d/a.conf": {Data: []byte("options e1000 RxIntDelay=0 InterruptThrottleRate=3000,3000\n" +
			"options igb x=1\n")},
		"usr/lib/modprobe.d/z.conf": {Data: []byte("options e1000 RxIntDelay=5\n")},
		"proc/cmdline": {Data: []byte("quiet e1000.TxIntDelay=1 snd-hda.x=2 " +
			"e1000.InterruptThrottleRate=\"1\" e1000e.y=3\n")},
	}
	want := map[string]string{"RxIntDelay": "5", "InterruptThrottleRate": "1", "TxIntDelay": "1"}
	if got := bootconf.ModuleOptions(root, "e1000"); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := bootconf.ModuleOptions(root, "snd_hda"); !maps.Equal(got, map[string]string{"x": "2"}) {
		t.Errorf("%v", got)
	}
}

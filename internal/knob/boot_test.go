package knob_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/knob"
)

func bootFiles(files map[string]string) fstest.MapFS {
	m := make(fstest.MapFS)
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestBoot(t *testing.T) {
	b := knob.ReadBoot(bootFiles(map[string]string{
		"usr/lib/sysctl.d/50-default.conf":                         "# vendor\nnet.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\nnet.core.default_qdisc = fq_codel\nkernel.a.b=1\n",
		"usr/lib/sysctl.d/90-hidden.conf":                          "net.ipv4.tcp_sack = 0\n",
		"etc/sysctl.d/90-hidden.conf":                              "\n  ; nothing any more\n",
		"etc/sysctl.d/10-first.conf":                               "net/ipv4/tcp_rmem = 4096\t131072  6291456\nnet.ipv4.tcp_wmem=1 2 3\n",
		"run/sysctl.d/20-second.conf":                              "net.ipv4.tcp_wmem = 4 5 6\n",
		"etc/sysctl.d/30-third.txt":                                "net.ipv4.tcp_wmem = 7 8 9\n",
		"etc/sysctl.conf":                                          "\nnet.ipv4.conf.eth0/100.rp_filter=1\nno assignment\n=\n",
		"etc/tuned/active_profile":                                 "mine\n",
		"etc/tuned/mine/tuned.conf":                                "[main]\ninclude=throughput-performance, mine\n[sysctl]\nnet.core.somaxconn=>2048\nnet.ipv4.tcp_rmem=0 0 0\n[cpu]\nnet.core.optmem_max=5\n",
		"usr/lib/tuned/profiles/throughput-performance/tuned.conf": "[sysctl]\nnet.core.default_qdisc=fq\nnet.core.somaxconn=1\nnet.core.rmem_max=${size}\n",
		"etc/modprobe.d/nic.conf":                                  "options e1000e InterruptThrottleRate=3000,3000 IntMode=1\noptions tcp-cubic hystart=0\nblacklist e1000\n",
		"usr/lib/modprobe.d/nic.conf":                              "options e1000e IntMode=0\n",
	}))
	for id, want := range map[knob.ID]knob.Origin{
		"sysctl:net.ipv4.tcp_rmem":                {File: "/etc/sysctl.d/10-first.conf", Line: 1, Value: "4096 131072 6291456", By: "sysctl"},
		"sysctl:net.ipv4.tcp_wmem":                {File: "/run/sysctl.d/20-second.conf", Line: 1, Value: "4 5 6", By: "sysctl"},
		"sysctl:net.ipv4.tcp_sack":                {},
		"sysctl:net.ipv4.conf.eth0/100.rp_filter": {File: "/etc/sysctl.conf", Line: 2, Value: "1", By: "sysctl"},
		"sysctl:net.ipv4.conf.eth1.rp_filter":     {File: "/usr/lib/sysctl.d/50-default.conf", Line: 2, Value: "2", By: "sysctl"},
		"sysctl:net.core.default_qdisc":           {File: "/usr/lib/tuned/profiles/throughput-performance/tuned.conf", Line: 2, Value: "fq", By: "tuned"},
		"sysctl:net.core.somaxconn":               {File: "/etc/tuned/mine/tuned.conf", Line: 4, Value: ">2048", By: "tuned"},
		"sysctl:net.core.optmem_max":              {},
		"sysctl:net.core.rmem_max":                {},
		"module:e1000e/InterruptThrottleRate":     {File: "/etc/modprobe.d/nic.conf", Line: 1, Value: "3000,3000", By: "modprobe"},
		"module:e1000e/IntMode":                   {File: "/etc/modprobe.d/nic.conf", Line: 1, Value: "1", By: "modprobe"},
		"module:tcp_cubic/hystart":                {File: "/etc/modprobe.d/nic.conf", Line: 2, Value: "0", By: "modprobe"},
		"link:eth0/mtu":                           {},
	} {
		got, ok := b.Origin(id)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want.File != "") {
			t.Errorf("%s: %v (-want +got):\n%s", id, ok, diff)
		}
	}
	if _, ok := knob.ReadBoot(fstest.MapFS{}).Origin("sysctl:net.ipv4.tcp_rmem"); ok {
		t.Error("a host without configuration sets something")
	}
}

// No text of a configuration makes the reader fail, and what it tells has the name of a knob and a place.
func FuzzReadBoot(f *testing.F) {
	f.Add("net.ipv4.tcp_rmem = 1 2 3\n", "[main]\ninclude=x\n[sysctl]\na.b=1\n", "options a b=1\n")
	f.Add("-net/ipv4/*/x=1\n*.*=\n", "[sysctl\n[]\n=\n", "options options options\n")
	f.Fuzz(func(t *testing.T, sysctl, tuned, modprobe string) {
		b := knob.ReadBoot(bootFiles(map[string]string{
			"etc/sysctl.conf": sysctl, "etc/tuned/active_profile": "x y ../z", "etc/tuned/x/tuned.conf": tuned, "etc/modprobe.d/a.conf": modprobe,
		}))
		for _, d := range knob.Catalogue().All() {
			if o, ok := b.Origin(d.Pattern); ok && (o.File == "" || o.Line < 1 || o.By == "" || strings.Contains(string(o.Value), "\n")) {
				t.Fatalf("%s: %+v", d.Pattern, o)
			}
		}
	})
}

package bootconf_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/bootconf"
)

// TestProfileFiles follows what profiles include: by names of the host's directories, beside a
// profile that is elsewhere, in circles, and into nothing.
func TestProfileFiles(t *testing.T) {
	root := fstest.MapFS{}
	for file, text := range map[string]string{
		"usr/lib/tuned/network-latency/tuned.conf":                 "[main]\ninclude=latency-performance\n",
		"usr/lib/tuned/latency-performance/tuned.conf":             "[sysctl]\nvm.swappiness=10\n",
		"usr/lib/tuned/profiles/throughput-performance/tuned.conf": "[main]\nsummary=new place\n",
		"etc/tuned/latency-performance/tuned.conf":                 "[sysctl]\nvm.swappiness=20\n",
		"etc/tuned/round/tuned.conf":                               "[main]\ninclude = square ; base,-absent\n",
		"etc/tuned/square/tuned.conf":                              "[main]\ninclude=round, nowhere\n",
		"srv/site/own/tuned.conf":                                  "[main]\ninclude=base,latency-performance\n",
		"srv/site/base/tuned.conf":                                 "[sysctl]\n",
		"usr/lib/tuned/base/tuned.conf":                            "[sysctl]\n",
	} {
		root[file] = &fstest.MapFile{Data: []byte(text)}
	}
	for profile, want := range map[string][2][]string{
		"network-latency": {{"etc/tuned/latency-performance/tuned.conf", "usr/lib/tuned/network-latency/tuned.conf"}},
		"round": {{"etc/tuned/square/tuned.conf", "usr/lib/tuned/base/tuned.conf", "etc/tuned/round/tuned.conf"},
			{"nowhere"}},
		"srv/site/own/tuned.conf": {{"srv/site/base/tuned.conf", "etc/tuned/latency-performance/tuned.conf",
			"srv/site/own/tuned.conf"}},
		"absent":               {},
		"..":                   {},
		"../etc/tuned.conf":    {},
		"srv/site/own":         {},
		"srv/none/tuned.conf":  {},
		"etc/tuned/round/none": {},
	} {
		files, missing := bootconf.ProfileFiles(root, profile)
		if diff := cmp.Diff(want, [2][]string{files, missing}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
	if diff := cmp.Diff([]string{"base", "latency-performance", "network-latency", "round", "square",
		"throughput-performance"}, bootconf.Profiles(root)); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

package cli

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob"
)

// set judges by the advice of the system that it changes: the same number is right on one and
// harmful on another.
func TestHarmfulOnEverySystem(t *testing.T) {
	for _, c := range []struct {
		os      advice.OS
		release string
		setting knob.Setting
		want    string // in the sentence; empty: none
	}{
		{advice.FreeBSD, "14.1-RELEASE", knob.Setting{Knob: "sysctl:net.inet.tcp.hostcache.cachelimit", Value: "100"},
			"Lowers the number of hosts"},
		{advice.FreeBSD, "14.1-RELEASE", knob.Setting{Knob: "sysctl:net.inet.tcp.hostcache.cachelimit", Value: "30000"}, ""},
		{advice.FreeBSD, "14.1-RELEASE", knob.Setting{Knob: "sysctl:kern.ipc.maxsockbuf", Value: "262144"},
			"Lowers the cap of every socket buffer"},
		{advice.Illumos, "5.11", knob.Setting{Knob: "ipadm:tcp/recv_buf", Value: "49152"}, "default is 128000"},
		{advice.Linux, "6.18.44", knob.Setting{Knob: "sysctl:net.inet.tcp.hostcache.cachelimit", Value: "100"}, ""},
	} {
		r, err := advice.ParseRelease(c.os, c.release)
		if err != nil {
			t.Fatal(err)
		}
		target := advice.Target{OS: c.os, Release: map[advice.OS]advice.Release{c.os: r}}
		got := strings.Join(harmful(target, []knob.Setting{c.setting}), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: %q, want %q", c.os, c.setting.Knob, got, c.want)
		}
	}
}

package knob_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

func TestNearest(t *testing.T) {
	c := knob.Catalogue()
	for text, want := range map[string]knob.ID{
		"tcp_rnem":                       "sysctl:net.ipv4.tcp_rmem",
		"tcp_rmme":                       "sysctl:net.ipv4.tcp_rmem",
		"net.ipv4.tcp_congestion_contol": "sysctl:net.ipv4.tcp_congestion_control",
		"sysctl:net.core.rmen_max":       "sysctl:net.core.rmem_max",
		"mut":                            "link:*/mtu",
		"txquelen":                       "link:*/txqueuelen",
		"RPS_CPU":                        "queue:*/rx-*/rps_cpus",
		"InterruptTrottleRate":           "module:e1000/InterruptThrottleRate",
		"xxxxxxxxxxxxxxxx":               "",
		"":                               "",
		strings.Repeat("a", 5000):        "",
	} {
		got := c.Nearest(text, 3)
		if len(got) > 3 || want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%.40q: %q; want %q", text, got, want)
		}
	}
}

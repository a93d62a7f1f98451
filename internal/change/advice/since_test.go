package advice

import (
	"strings"
	"testing"
)

// TestSinceOfTheNumberThatDecides checks that a verdict names the release in which the limit of a
// triple changed, and not that of another number beside it: 6 MiB came with 3.4, 131072 with 4.20.
func TestSinceOfTheNumberThatDecides(t *testing.T) {
	for release, want := range map[string]string{"3.10": "3.4", "4.18": "3.4", "6.1": "3.4", "6.18": "6.16"} {
		r, err := ParseRelease(Linux, release)
		if err != nil {
			t.Fatal(err)
		}
		target := Target{OS: Linux, Release: map[OS]Release{Linux: r}}
		j := target.Judge(Advice{Settings: []Setting{{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 87380 2097152",
			OS: Linux}}})[0]
		if j.Verdict != Harmful || j.Since != want || !strings.Contains(j.Why, "since Linux "+want+" ") {
			t.Errorf("linux %s: %s since %q, want %s: %s", release, j.Verdict, j.Since, want, j.Why)
		}
	}
}

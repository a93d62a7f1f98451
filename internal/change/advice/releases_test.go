package advice

import "testing"

// TestPollingByRelease: the switch for the whole host is a deprecated name in polling(4) of
// FreeBSD 6, which still works, and is not in sys/kern/kern_poll.c of 8.
func TestPollingByRelease(t *testing.T) {
	for r, want := range map[string]Verdict{"5.3": StillRight, "6.4": StillRight, "8.0": Removed,
		"14.2": Removed} {
		all := judged(t, Target{Release: release(t, FreeBSD, r)}, "# /etc/sysctl.conf of FreeBSD\nkern.polling.enable=1\n")
		if len(all) != 1 || all[0].Verdict != want {
			t.Errorf("FreeBSD %s: %v, want %s", r, short(all), want)
		}
	}
}

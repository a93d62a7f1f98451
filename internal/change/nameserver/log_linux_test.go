package nameserver

import (
	"os"
	"path/filepath"
	"testing"
)

// TestComplaint: the lines are those of BIND 9.18.49, the last of a server that was ended while it
// loaded its configuration, then those of the one after it.
func TestComplaint(t *testing.T) {
	const ended = "26-Nov-2026 03:35:10.272 loading configuration: shutting down\n" +
		"26-Nov-2026 03:35:10.272 exiting (due to fatal error)\n"
	const crashed = "26-Nov-2026 05:37:00.292 exiting (due to assertion failure)\n"
	const started = "26-Nov-2026 05:37:00.504 starting BIND 9.18.49-1~deb12u1-Debian (Extended Support Version)\n"
	for text, want := range map[string]bool{
		crashed:                     true,
		crashed + started:           false,
		crashed + started + crashed: true,
		"":                          false,
		ended:                       false,
		ended + "26-Nov-2026 03:35:10.504 all zones loaded\n":                                      false,
		ended + "26-Nov-2026 03:35:10.504 loading configuration: failure\n":                        true,
		ended + "26-Nov-2026 03:35:10.504 exiting (due to fatal error)\n":                          true,
		"26-Nov-2026 03:35:10.504 named.conf:12: option 'cleaning-interval' no longer exists\n":    true,
		"26-Nov-2026 03:35:10.504 setsockopt(22, SO_RCVBUF) failed: Operation not permitted (x)\n": true,
	} {
		name := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := complaint(name, 0); (err != nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

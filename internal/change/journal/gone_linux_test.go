package journal

import "testing"

// TestGone: lines of proc_pid_stat(5) of Linux 6.18. The third is of a process that SIGKILL has
// ended on a busy machine, between exit_mm and exit_notify.
func TestGone(t *testing.T) {
	for stat, want := range map[string]bool{
		"77 (linerate) S 1 77 77 0 -1 4194560 731 0 0 0 0 1 0 0 20 0 7 0 812345 1269420032 3200":  false,
		"77 (linerate) t 1 77 77 0 -1 4194560 731 0 0 0 0 1 0 0 20 0 7 0 812345 1269420032 3200":  false,
		"77 (linerate) R 1 77 77 0 -1 4195340 731 0 0 0 0 1 0 0 20 0 1 0 812345 0 0":              true,
		"77 (linerate) Z 1 77 77 0 -1 4228108 731 0 0 0 0 1 0 0 20 0 1 0 812345 0 0":              true,
		"77 (linerate) T 1 77 77 0 -1 4194560 731 0 0 0 0 1 0 0 20 0 7 0 812345 1269420032 3200":  true,
		"77 (a) Z 0 (b) S 1 77 77 0 -1 4194560 731 0 0 0 0 1 0 0 20 0 7 0 812345 1269420032 3200": false,
	} {
		if got := gone(afterName([]byte(stat))); got != want {
			t.Errorf("%s: gone %v, want %v", stat, got, want)
		}
	}
}

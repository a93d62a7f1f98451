package journal

import "time"

// WaitForSystemd sets how long a guard of this process waits for systemd.
func WaitForSystemd(d time.Duration) { systemdPatience = d }

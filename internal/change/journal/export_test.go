package journal

import "time"

// WaitForSystemd sets how long a guard of this process waits for systemd.
func WaitForSystemd(d time.Duration) { systemdPatience = d }

// ReportTo makes a journal of a test send its records to a guard, as one that started the guard
// itself does.
func (j *Journal) ReportTo(life lifeline) {
	j.guard = &Guard{mode: j.options.Mode, life: life, exited: make(chan struct{}), end: func() {}}
}

// Describe sets how the journal records a guard.
func (g *Guard) Describe(is Guardian) { g.is = &is }

// HearProbe waits for the answers of a process that tries the storage.
var HearProbe = hearProbe

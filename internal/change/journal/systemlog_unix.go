//go:build unix

package journal

import "log/syslog"

// systemLog writes a line to the log of the system, if one listens (syslog(3): /dev/log, on FreeBSD
// /var/run/log). It waits at most wordPatience.
func systemLog(text string) {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w, err := syslog.New(syslog.LOG_CRIT|syslog.LOG_DAEMON, "linerate")
		if err != nil {
			return // no log of the system: a container, or before it is started
		}
		_ = w.Crit(text) // the guard has other places for the same line
		_ = w.Close()
	}()
	awaitFor(sent, wordPatience)
}

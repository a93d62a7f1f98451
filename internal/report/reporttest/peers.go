package reporttest

import (
	"time"

	"github.com/linerate/linerate/internal/report"
)

const peersFile = "/var/lib/linerate-serve/peers.json"

// peers are one that measures, one that tunes, and one whose key has ended.
func peers() []report.PeerEntry {
	at := func(day int) *time.Time {
		t := time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC)
		return &t
	}
	return []report.PeerEntry{
		{Name: "hub", Added: at(1), LastUse: at(21), LastFrom: "192.0.2.9"},
		{Name: "lab", AllowTuning: true, Tuning: "d1,sysctl:net.ipv4.*", Added: at(2), Expires: at(30)},
		{Name: "old", Added: at(1), Expires: at(2), Expired: true, LastUse: at(1), LastFrom: "2001:db8::9"},
	}
}

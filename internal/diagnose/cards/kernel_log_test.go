package cards

import (
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

func TestKernelLog(t *testing.T) {
	logged := func(events ...host.KernelEvent) func(*evidence.Span) {
		return func(s *evidence.Span) { s.Host.KernelLog = events }
	}
	event := func(name string, kind host.EventKind, total int, last float64) host.KernelEvent {
		return host.KernelEvent{Interface: name, Kind: kind, Total: total, FirstSeconds: last + 600, LastSeconds: last,
			Text: "what it said"}
	}
	software := gigabit(func(x *host.Interface) { x.Virtual = true })
	for _, c := range []struct {
		name string
		rule func(*evidence.Span) *evidence.Finding
		span *evidence.Span
		want want
	}{
		{"a hung queue", driverFault, watched(gigabit(), nil, logged(event("eth0", host.QueueTimeout, 1, 300))),
			want{evidence.Warning, "A transmit queue of eth0 stood still 1 time, the last one 5 min"}},
		{"a hang that the kernel and the driver report", driverFault, watched(gigabit(), nil,
			logged(event("eth0", host.QueueTimeout, 1, 300), event("eth0", host.HardwareHang, 1, 299))),
			want{evidence.Warning, "NIC eth0 hung or was reset 1 time"}},
		{"a NIC that was reset", driverFault, watched(gigabit(), nil, logged(event("eth0", host.HardwareHang, 4, 40_000))),
			want{evidence.Notice, "NIC eth0 hung or was reset 4 times"}},
		{"a poll beyond its budget", driverFault, watched(gigabit(), nil, logged(event("eth0", host.NAPIBudget, 1, 60))),
			want{evidence.Warning, "driver of eth0 polled beyond"}},
		{"days ago", driverFault, watched(gigabit(), nil, logged(event("eth0", host.QueueTimeout, 9, 200_000))), want{}},
		{"another NIC", driverFault, watched(gigabit(), nil, logged(event("eth9", host.QueueTimeout, 1, 300))), want{}},
		{"software of that name", driverFault, watched(software, nil, logged(event("eth0", host.QueueTimeout, 1, 300))),
			want{}},
		{"a log without events", driverFault, watched(gigabit(), nil), want{}},
		{"a link that flaps", linkFlaps, watched(gigabit(), nil, logged(event("eth0", host.LinkDown, 5, 300))),
			want{evidence.Warning, "The link of eth0 went down 5 times"}},
		{"it flapped this morning", linkFlaps, watched(gigabit(), nil, logged(event("eth0", host.LinkDown, 5, 20_000))),
			want{evidence.Notice, "5 times"}},
		{"a cable that was moved", linkFlaps, watched(gigabit(), nil, logged(event("eth0", host.LinkDown, 2, 300))), want{}},
		{"a link that came up", linkFlaps, watched(gigabit(), nil, logged(event("eth0", host.LinkUp, 9, 300))), want{}},
		{"during the observation", linkFlaps, watched(gigabit(), counts{"carrier_changes": 2}),
			want{evidence.Warning, "came or went 2 times in 3"}},
		{"changes since boot", linkFlaps, watched(gigabit(), counts{"carrier_changes": 6}, sinceBoot), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.rule(c.span), c.want) })
	}
}

package reporttest

import (
	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/persist"
	"github.com/linerate/linerate/internal/report"
)

// persistSteps are steps of every kind: a plain one, two with a shared file, one that another
// file overrides, one by hand.
func persistSteps() []persist.Step {
	link := journal.File{Path: "/etc/systemd/network/60-linerate-eth0.link",
		Content: "[Match]\nPermanentMACAddress=52:54:00:12:34:56\n\n[Link]\nMACAddressPolicy=persistent\n", Mode: 0o644}
	own := func(path, text string) journal.File { return journal.File{Path: path, Content: text, Mode: 0o644} }
	return []persist.Step{
		{Change: journal.Change{ID: "0003", Knob: "sysctl:net.ipv4.tcp_rmem", To: "4096 131072 33554432"},
			Format: persist.Sysctl,
			Files: []journal.File{own("/etc/sysctl.d/90-linerate-0003.conf",
				"net.ipv4.tcp_rmem = 4096 131072 33554432\n")}},
		{Change: journal.Change{ID: "0004", Knob: "ethtool:eth0/ring.rx", To: "4096"}, Format: persist.Link,
			Files: []journal.File{link, own(link.Path+".d/90-linerate-0004.conf", "[Link]\nRxBufferSize=4096\n")},
			Notes: []string{"make the initial ramdisk anew"}},
		{Change: journal.Change{ID: "0005", Knob: "ethtool:eth0/coalesce.rx-usecs", To: "50"}, Format: persist.Link,
			Files:     []journal.File{link, own(link.Path+".d/90-linerate-0005.conf", "[Link]\nRxCoalesceSec=50us\n")},
			Conflicts: []bootconf.Line{{File: "/etc/tuned/x/tuned.conf", Number: 2, Value: "100", By: "tuned"}}},
		{Change: journal.Change{ID: "0006", Knob: "route:10.0.0.0/8/initcwnd", To: "20"}, Format: persist.ByHand,
			Line: "initcwnd 20 where the route is configured"},
	}
}

// persistFindings are findings of every result.
func persistFindings() ([]persist.Finding, map[string]journal.Kept) {
	held, lost := knob.Value("1"), knob.Value("bbr")
	kept := func(name string) journal.Kept { return journal.Kept{Root: "/", Files: []journal.File{{Path: name}}} }
	change := func(id string, k knob.ID, to knob.Value) journal.Change {
		return journal.Change{ID: id, Knob: k, To: to, State: journal.Persisted, Persisted: true}
	}
	return []persist.Finding{
			{Change: change("0003", "sysctl:net.ipv4.tcp_sack", "1"), Result: persist.Held, Present: &held,
				SetBy: &bootconf.Line{File: "/etc/sysctl.d/90-linerate-0003.conf", Number: 3, Value: "1",
					By: "sysctl"}},
			{Change: change("0004", "sysctl:net.ipv4.tcp_congestion_control", "cubic"), Result: persist.Lost,
				Present: &lost, Why: "/etc/sysctl.conf:7 sets it to bbr (sysctl)",
				SetBy: &bootconf.Line{File: "/etc/sysctl.conf", Number: 7, Value: "bbr", By: "sysctl"}},
			{Change: change("0005", "sysctl:net.core.somaxconn", "8192"), Result: persist.Waiting, Present: &held,
				Edited: []string{"/etc/sysctl.d/90-linerate-0005.conf"},
				Why:    "edited since: /etc/sysctl.d/90-linerate-0005.conf"},
			{Change: change("0006", "ethtool:eth0/ring.rx", "4096"), Result: persist.Covered,
				Why: "change 0008 stands on top", Missing: []string{"/etc/x"}},
		}, map[string]journal.Kept{"0003": kept("/etc/sysctl.d/90-linerate-0003.conf"),
			"0004": kept("/etc/sysctl.d/90-linerate-0004.conf"),
			"0005": kept("/etc/sysctl.d/90-linerate-0005.conf"), "0006": kept("/etc/x")}
}

// persistDocuments are the documents of persist.
func persistDocuments() []Document {
	planned := report.NewPersist(Envelope(), "/", report.PersistPlanned, persistSteps())
	done := report.NewPersist(Envelope(), "/mnt/image", report.PersistDone, persistSteps()[:2])
	refused := report.NewPersist(Envelope(), "/", report.PersistRefused, persistSteps())
	findings, kept := persistFindings()
	check := report.NewPersistCheck(Envelope(), "/", findings, kept)
	return []Document{{"persist-dry-run", planned}, {"persist", done}, {"persist-refused", refused},
		{"persist-check", check}}
}

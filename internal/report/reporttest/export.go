package reporttest

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/atboot"
	"github.com/linerate/linerate/internal/change/export"
	"github.com/linerate/linerate/internal/report"
)

// exported has one setting that is exported and one that is left out.
func exported(t testing.TB) *report.ExportDocument {
	t.Helper()
	set := export.Set{
		Origin: export.Origin{Host: "db1", OS: "linux", Kernel: "6.1.0-18-amd64", Arch: "amd64", Linerate: "v0.1.0",
			Time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Drivers: map[string]string{"eth0": "e1000e"}},
		Proof: &export.Proof{Run: "20261120-120000-7f3a", Target: "192.0.2.7", Goal: "throughput",
			Effect: export.Effect{Ratio: 3.97, Low: 3.91, High: 4.03, Confidence: 0.95, Pairs: 10}},
		Changes: []export.Change{
			{ID: "0001", Knob: "sysctl:net.ipv4.conf.eth0.rp_filter", From: "1", To: "2", State: "committed",
				Why:   "receive-window-limited",
				Proof: &export.Effect{Ratio: 3.91, Low: 3.84, High: 3.98, Confidence: 0.95, Pairs: 6}},
			{ID: "0002", Knob: "irq:45/affinity", From: "0-3", To: "2", State: "persisted"},
		},
	}
	bundle, err := export.Write(export.NixOS, set)
	if err != nil {
		t.Fatal(err)
	}
	return report.NewExport(Envelope(), set, bundle)
}

// bootRecovery is the document of recover --install on a host with systemd.
func bootRecovery() *report.BootRecoveryDocument {
	d := report.NewBootRecovery(Envelope(), "[Unit]\n")
	d.Result = atboot.Result{Init: atboot.Systemd, Path: "/etc/systemd/system/linerate-recover.service", Changed: true,
		Links: []string{"/etc/systemd/system/sysinit.target.wants/linerate-recover.service"}}
	d.Installed = true
	return d
}

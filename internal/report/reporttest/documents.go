package reporttest

import (
	"testing"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
)

// Document is one document, and the name of its golden files.
type Document struct {
	Name string
	Doc  any
}

// Documents returns documents of every kind, including unusual ones: empty, hostile, refused,
// unfinished.
func Documents(t testing.TB) []Document {
	t.Helper()
	inspect := report.NewInspect(Envelope(), Snapshot())
	inspect.Ceilings = Ceilings() // how they are derived is tested where it is done
	measure := report.NewMeasure(Envelope(), "192.0.2.7:7070", Tests())
	history := report.NewHistory(Envelope(), Changes())
	none := report.NewHistory(Envelope(), nil)
	set := report.NewHistory(Envelope(), Changes())
	set.Changes = append(set.Changes, sideEffects())
	set.Unchanged = []report.Unchanged{{Setting: knob.Setting{Knob: "sysctl:net.ipv4.tcp_sack", Value: "1"}}}
	undo := report.NewUndo(Envelope(), outcomes(), report.UndoLeft{Run: "20261122-130505-7f3a", Target: "192.0.2.7",
		Changes: Changes()[:1], Reason: "no key was given"})
	entry, reserved := entries()
	explain, explainReserved := report.NewExplain(Envelope(), entry), report.NewExplain(Envelope(), reserved)
	one := report.NewKnobs(Envelope(), knobs()[:1], nil)
	oneHere := report.NewKnobs(Envelope(), knobs()[:1], knobsNow())
	severalHere := report.NewKnobs(Envelope(), knobs(), knobsNow())
	several := report.NewKnobs(Envelope(), knobs(), nil)
	scenarios := report.NewLabList(Envelope(), []report.LabEntry{
		{Scenario: "receive-window", Title: "The receiver's buffers are those of an old default",
			About: "A long story.", Expected: "receive-window-limited", Tunable: true,
			Knobs: []string{"sysctl:net.ipv4.tcp_rmem"}},
		{Scenario: "path-loss",
			Title: "The path loses packets and the sender's congestion control takes each loss for congestion",
			About: "Another.", Expected: "path-loss", Tunable: true},
		{Scenario: "healthy", Title: "Nothing is wrong", About: "No fault.", Expected: "healthy"},
	})
	verdicts := matrix.NewVerdicts(Envelope(), Matrix())
	tuned := matrix.NewTunes(Envelope(), TuneMatrix())
	serve := report.NewServe(Envelope())
	serve.Listen, serve.Port, serve.Key, serve.Command = "[::]:7070", 7070, "HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z",
		"LINERATE_KEY=HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z linerate measure 192.0.2.7:7070"
	serve.Addresses = []string{"192.0.2.7", "2001:db8::7"}
	serve.Accepting = []report.ServeDialect{{Dialect: "iperf3", Listen: "[::]:5201"}}
	added := report.NewPeers(Envelope(), peersFile, peers())
	added.Added = &report.PeerAdded{Name: "lab", Key: serve.Key, Address: "192.0.2.7:7070", Command: serve.Command}
	revoked := report.NewPeers(Envelope(), peersFile, peers()[1:])
	revoked.Revoked = "hub"
	version := report.NewVersion(Envelope(), "linerate")
	version.Go = "go1.24.4" // not the compiler of the test
	all := []Document{
		{"version", version},
		{"lab-up", report.NewLabUp(Envelope(), report.LabUpDocument{World: "pair", Key: serve.Key,
			State: "/tmp/linerate-lab-1/near", Hosts: []report.LabUpHost{{Name: "near", Address: "10.0.0.1",
				Enter: "nsenter --target 17 --net -- sh"}}})},
		{"serve", serve},
		{"peers", report.NewPeers(Envelope(), peersFile, peers())},
		{"peers-none", report.NewPeers(Envelope(), peersFile, nil)},
		{"peers-add", added},
		{"peers-revoke", revoked},
		{"export", exported(t)},
		{"boot-recovery", bootRecovery()},
		{"hub-check", report.NewHubCheck(Envelope(), report.HubCheckDocument{
			File: "/etc/linerate-hub/hub.yaml", Listen: "127.0.0.1:7071", Data: "/var/lib/linerate-hub",
			RetentionSeconds: 1296000, MaxSizeBytes: 4e9,
			Schedules: []string{"to-backup"}, Alerts: []string{"link-down"}, Switches: []string{"core-1"},
		})},
		{"switch", report.NewSwitch(Envelope(), report.Switch{Name: "core-1", Address: "192.0.2.10", SystemName: "core-1",
			Description: "A switch", UptimeSeconds: 86400, ReadSeconds: 0.2, Ports: []report.SwitchPort{{Name: "Gi0/1", Index: 1,
				Enabled: true, Up: true, Speed: 1e9, Duplex: "full", CounterBits: 64, OverSeconds: 10,
				TransmitRate: 312e6, TransmitDiscards: 1234, UntaggedVLANs: "1", TaggedVLANs: "20,30-32",
				Neighbours: []report.SwitchNeighbour{{System: "web-1", Port: "eth0"}},
				Attached:   []report.SwitchAttached{{Interface: "eth0", Source: "LLDP"}}}}},
			findings()[:1])},
		{"agent", report.NewAgent(Envelope(), "/run/linerate/agent.sock", "linerate", "/var/lib/linerate",
			&report.AgentOrders{HostID: "h1", Keys: []string{"ann"}, Policy: []string{
				"The fleet cannot change any setting of this host."}})},
		{"inspect", inspect},
		{"inspect-interfaces", interfaces()},
		{"measure", measure},
		{"diagnose", diagnosis()},
		{"diagnose-verbose", diagnosis()},
		{"diagnose-passive", passive()},
		{"diagnose-cpu", triage()},
		{"history", history},
		{"history-run", report.NewHistory(Envelope(), runChanges())},
		{"history-empty", none},
		{"set", set},
		{"undo", undo},
		{"explain", explain},
		{"explain-reserved", explainReserved},
		{"knob", one},
		{"knob-here", oneHere},
		{"knobs-here", severalHere},
		{"knobs", several},
		{"lab-list", scenarios},
		{"lab-matrix", verdicts},
		{"lab-tune", tuned},
		{"error", report.NewError("connect 192.0.2.7:7070: connection refused",
			"run `linerate serve` on the other host", 12)},
	}
	all = append(all, persistDocuments()...)
	all = append(all, calculations()...)
	all = append(all, diskDocuments()...)
	all = append(all, nfsDocuments()...)
	all = append(all, profileDocuments()...)
	all = append(all, resolverDocuments()...)
	all = append(all, firewalls()...)
	all = append(all, measurements(t)...)
	all = append(all, Document{"check-advice", judgedAdvice()},
		Document{"check-advice-empty", report.NewCheckAdvice(Envelope(), "empty.conf", 1, advice.Windows, nil, nil)})
	all = append(all, Document{"apply", appliedProfile()}, Document{"apply-nothing", refusedProfile()},
		Document{"tune-plan", plannedRun()})
	for name, run := range map[string]report.TuneRun{"tune": Run(), "tune-nothing": nothingRun(),
		"tune-latency": latencyRun(), "tune-hostile": hostileRun(),
		"tune-soak": soakedRun(true), "tune-soak-lost": soakedRun(false), "tune-from-nothing": brokenPathRun(),
		"tune-short": shortRun()} {
		doc := report.NewTune(Envelope(), run)
		all = append(all, Document{name, doc})
	}
	for name, doc := range Reports(t) {
		all = append(all, Document{name, doc})
	}
	list, empty := runList(t), report.NewRuns(Envelope(), "/var/lib/linerate/runs", nil)
	all = append(all, Document{"runs", list},
		Document{"runs-empty", empty})
	for name, run := range measured() {
		doc := report.NewMeasure(Envelope(), "192.0.2.7:7070", []traffic.Result{run})
		all = append(all, Document{"measure-" + name, doc})
	}
	for _, doc := range labs() {
		all = append(all, Document{"lab-" + doc.Scenario, doc})
	}
	return all
}

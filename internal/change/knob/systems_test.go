package knob_test

import (
	"os"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// ofLinux returns the definitions of Linux, which every build has.
func ofLinux() []knob.Definition {
	all, own := knob.Catalogue().All(), knob.Catalogue().Own()
	if len(own) == len(all) {
		return all
	}
	return all[len(own):]
}

// The knobs of other systems are in no build for Linux, so their files are checked here.
func TestCataloguesOfOtherSystems(t *testing.T) {
	for name, least := range map[string]int{"freebsd": 50, "solaris": 25, "windows": 25} {
		data, err := os.ReadFile("catalogue/" + name + "/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		c, err := knob.ParseCatalog(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(c.All()) < least {
			t.Errorf("%s: %d definitions", name, len(c.All()))
		}
		checkDefinitions(t, c.All())
		for _, d := range c.All() {
			if slices.ContainsFunc(ofLinux(), func(l knob.Definition) bool { return l.Pattern == d.Pattern }) {
				t.Errorf("%s: %s is Linux's too", name, d.Pattern)
			}
			if d.Effect == knob.EffectAtBoot && d.Undo != knob.UndoReboot {
				t.Errorf("%s: %s takes effect at boot, and its undo does not", name, d.Pattern)
			}
			if d.Undo == "" {
				t.Errorf("%s: %s does not say what its undo takes", name, d.Pattern)
			}
		}
	}
}

func TestUndo(t *testing.T) {
	for _, c := range []struct {
		id     knob.ID
		effect knob.Effect
		class  knob.Disturbance
		want   knob.Undo
	}{
		{"sysctl:net.ipv4.tcp_rmem", knob.EffectNewSockets, knob.DisturbsNewSockets, knob.UndoNow},
		{"ethtool:eth0/ring.rx", knob.EffectNow, knob.DisturbsBriefLoss, knob.UndoDowntime},
		{"dladm:net0/mtu", knob.EffectNow, knob.DisturbsLink, knob.UndoDowntime},
		{"module:e1000/InterruptThrottleRate", knob.EffectAtLoad, knob.DisturbsHost, knob.UndoDowntime},
		{"module:intel_idle/max_cstate", knob.EffectAtLoad, knob.DisturbsHost, knob.UndoReboot},
		{"registry:HKLM/x", knob.EffectAtBoot, knob.DisturbsNothing, knob.UndoReboot},
		// The kernel refuses a smaller value while it runs, although a larger one acts at once.
		{"sysctl:kern.ipc.nmbclusters", knob.EffectNow, knob.DisturbsNothing, knob.UndoReboot},
	} {
		if got := knob.UndoOf(c.id, c.effect, c.class); got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
	}
}

func TestNamesOfOtherSystems(t *testing.T) {
	for text, want := range map[string]struct{ id, subject, attribute, iface string }{
		"loader:hw.em.max_interrupt_rate": {"loader:hw.em.max_interrupt_rate", "", "hw.em.max_interrupt_rate", ""},
		"sysctl:dev.em.0.itr":             {"sysctl:dev.em.0.itr", "", "dev.em.0.itr", "em0"},
		"ifconfig:em0/tso4":               {"ifconfig:em0/tso4", "em0", "tso4", "em0"},
		"dladm:net0/_intr_adaptive":       {"dladm:net0/_intr_adaptive", "net0", "_intr_adaptive", "net0"},
		"driver:e1000g/1/MaxFrameSize":    {"driver:e1000g/1/MaxFrameSize", "e1000g/1", "MaxFrameSize", ""},
		"adapter:Ethernet 2/ndis.RSS":     {"adapter:Ethernet 2/ndis.RSS", "Ethernet 2", "ndis.RSS", "Ethernet 2"},
		"nettcp:InternetCustom/MinRtoMs":  {"nettcp:InternetCustom/MinRtoMs", "InternetCustom", "MinRtoMs", ""},
	} {
		id, err := knob.ParseID(text)
		if err != nil || string(id) != want.id || id.Subject() != want.subject || id.Attribute() != want.attribute ||
			id.Interface() != want.iface {
			t.Errorf("%s: %s, %v: %q %q %q", text, id, err, id.Subject(), id.Attribute(), id.Interface())
		}
	}
	for _, bad := range []string{`loader:a"b`, "loader:a/b", "loader:", "ifconfig:em0", "ifconfig:em 0/mtu"} {
		if id, err := knob.ParseID(bad); err == nil {
			t.Errorf("%s: %s", bad, id)
		}
	}
}

func TestOptionMayBeAbsent(t *testing.T) {
	low, high := int64(0), int64(3)
	d := knob.Definition{Form: knob.FormOption, Min: &low, Max: &high}
	for text, want := range map[knob.Value]knob.Value{"absent": "absent", " 3 ": "3", "4": "", "x": "", "": ""} {
		got, err := d.Normalize(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

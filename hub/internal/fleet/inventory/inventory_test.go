package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/fleet/selection"
	"github.com/linerate/linerate/internal/host"
)

var now = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

func facts(name string) Facts {
	return Facts{Name: name, OS: "linux", Kernel: "6.12.8-amd64", Arch: "amd64", CPU: "EPYC", CPUs: 16, Nodes: 2,
		Version: "1.2", Cards: []Card{{Name: "eth0", Driver: "mlx5_core", DriverVersion: "6.12.8-amd64", Firmware: "22.1",
			Model: "15b3:101d", SpeedBitsPerSec: 100e9, MTUBytes: 9000}},
		Settings: map[string]string{"net.core.rmem_max": "212992", "net.ipv4.tcp_rmem": "4096 131072 6291456"}}
}

func TestClass(t *testing.T) {
	base := facts("a")
	name := base.Class()
	if !strings.HasPrefix(name, "mlx5-6.12-100g-") {
		t.Errorf("class %s", name)
	}
	same := map[string]func(*Facts){
		"name":    func(f *Facts) { f.Name = "b" },
		"build":   func(f *Facts) { f.Kernel, f.Cards[0].DriverVersion = "6.12.9-amd64", "6.12.9-amd64" },
		"setting": func(f *Facts) { f.Settings["x"] = "1" },
		"memory":  func(f *Facts) { f.MemoryBytes = 5 },
	}
	other := map[string]func(*Facts){
		"kernel":   func(f *Facts) { f.Kernel = "6.1.8" },
		"firmware": func(f *Facts) { f.Cards[0].Firmware = "22.2" },
		"model":    func(f *Facts) { f.Cards[0].Model = "15b3:1017" },
		"driver":   func(f *Facts) { f.Cards[0].DriverVersion = "24.10-OFED" },
		"cpu":      func(f *Facts) { f.CPU = "Xeon" },
		"nodes":    func(f *Facts) { f.Nodes = 1 },
		"virtual":  func(f *Facts) { f.Virtualization = "kvm" },
		"speed":    func(f *Facts) { f.Cards[0].SpeedBitsPerSec = 25e9 },
		"mtu":      func(f *Facts) { f.Cards[0].MTUBytes = 1500 },
	}
	for what, change := range same {
		if f := facts("a"); true {
			change(&f)
			if f.Class() != name {
				t.Errorf("another %s makes another class", what)
			}
		}
	}
	for what, change := range other {
		if f := facts("a"); true {
			change(&f)
			if f.Class() == name {
				t.Errorf("another %s is in the same class", what)
			}
		}
	}
	if c := (&Facts{}).Class(); !strings.HasPrefix(c, "none-unknown-") {
		t.Errorf("class of nothing: %s", c)
	}
}

func TestOf(t *testing.T) {
	s := &host.Snapshot{Name: "h", OS: "linux", Kernel: "6.12.8", CPUs: []host.CPU{{Model: "EPYC"}, {NUMANode: 1}},
		Interfaces: []host.Interface{{Name: "lo", Up: true, Virtual: true}, {Name: "eth1", Up: true, SpeedBitsPerSec: 1e9},
			{Name: "eth0", Up: true, SpeedBitsPerSec: 25e9, Driver: "ice"}, {Name: "down"}},
		Settings: []host.Setting{{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096\t131072\t6291456"}}}
	f := Of(s, nil, "1.0")
	if len(f.Cards) != 2 || f.Cards[0].Name != "eth0" || f.Nodes != 2 || f.Settings["net.ipv4.tcp_rmem"] !=
		"4096 131072 6291456" {
		t.Errorf("%+v", f)
	}
	b, hash, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, again, _ := back.Encode(); again != hash {
		t.Error("the same facts have another hash after a journey")
	}
	if _, err := Decode(make([]byte, MostFacts+1)); err == nil {
		t.Error("facts of any size were read")
	}
}

func TestOutliers(t *testing.T) {
	s := NewStore()
	for i := range 10 {
		id := fmt.Sprint("ID", i)
		f := facts(fmt.Sprint("web", i))
		if i == 3 {
			f.Settings["net.core.rmem_max"] = "999"
			f.Kept = []Kept{{Knob: "a", Want: "1  2", Have: "1 2"}, {Knob: "b", Want: "1", Have: "2"}, {Knob: "c", Want: "1"}}
			f.Findings = []string{"rx-ring-overrun"}
		}
		if i < 5 { // half the class each: no usual value
			f.Settings["net.core.somaxconn"] = "128"
		} else {
			f.Settings["net.core.somaxconn"] = "4096"
		}
		s.Set(id, "joined-name", "member", []string{"web"}, map[string]string{"site": "ams"})
		if missing := s.Beat(id, "1.2", "h1", now); !missing {
			t.Error("the facts of a new host are not missing")
		}
		s.Put(id, "h1", f)
		if missing := s.Beat(id, "1.2", "h1", now); missing {
			t.Error("facts that are here are missing")
		}
	}
	s.Set("SILENT", "db1", "member", nil, nil)
	want := []Difference{{Knob: "net.core.rmem_max", Value: "999", Usual: "212992", Share: 0.9}}
	if diff := cmp.Diff(want, s.Outliers("ID3")); diff != "" {
		t.Errorf("outliers (-want +got):\n%s", diff)
	}
	if d := s.Outliers("ID1"); len(d) != 0 {
		t.Errorf("a host like its class differs in %v", d)
	}
	chosen := func(text string) string {
		sel, err := selection.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, h := range s.Hosts() {
			if sel.Match(&h, now) {
				names = append(names, h.Name)
			}
		}
		return strings.Join(names, " ")
	}
	for text, want := range map[string]string{
		"differs>0":                       "web3",
		"drift:yes":                       "web3",
		"finding:rx-ring-overrun":         "web3",
		"class:mlx5-6.12 host:web1":       "web1",
		"seen>1m":                         "db1",
		"knob:net.core.rmem_max!=212992":  "web3",
		"knob:sysctl:net.core.rmem_max=5": "",
		"site:ams group:web web9":         "web9",
	} {
		if got := chosen(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	classes := Summarize(s.Hosts(), now.Add(-time.Minute))
	if len(classes) != 2 || classes[0].Hosts != 10 || classes[0].Differ != 1 || classes[0].Drifted != 1 ||
		classes[0].Findings["rx-ring-overrun"] != 1 || classes[1].Silent != 1 || classes[1].Name != "unknown" {
		t.Errorf("classes: %+v", classes)
	}
	s.Forget("SILENT")
	if chosen("seen>1m") != "" {
		t.Error("a forgotten host is still there")
	}
}

package switches

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/switches/switchtest"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/sample"
)

// down is a tree that can be silent.
type down struct {
	*switchtest.Tree
	closed func()
}

func (d down) Close() error { d.closed(); return nil }

// TestPoller runs a poller for minutes of a simulated clock: one switch answers, one does not, and
// one comes back.
func TestPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := switchtest.Switch(4, true)
		began := time.Now()
		var mu sync.Mutex
		appended := make(map[string]int) // readings with a value, by switch
		problems := make(map[string]error)
		opened, closed := 0, 0
		silent := true
		p := New(Options{
			Switches: []Config{
				{Name: "good", Address: "192.0.2.1", Every: unit.Span(10 * time.Second)},
				{Name: "bad", Address: "192.0.2.2", Every: unit.Span(10 * time.Second),
					Attached: map[string]string{"eth1": "Gi0/3"}},
			},
			Host: "web-1",
			Append: func(r *sample.Reading) {
				mu.Lock()
				defer mu.Unlock()
				for _, point := range r.Points {
					if point.Series.Metric == answers && point.Value == 1 {
						appended[point.Series.Values[0]]++
					}
				}
			},
			Put:     func(string, *sample.Reading) {},
			Problem: func(part string, err error) { mu.Lock(); problems[part] = err; mu.Unlock() },
			Open: func(c Config) (Agent, error) {
				mu.Lock()
				defer mu.Unlock()
				opened++
				if c.Name == "bad" && silent {
					return nil, errors.New("192.0.2.2 does not answer:\x1b[2J no host")
				}
				tree.Set(switchtest.Uptime, uint64(time.Since(began)/(10*time.Millisecond)))
				return down{tree, func() { mu.Lock(); closed++; mu.Unlock() }}, nil
			},
			Interfaces: func() ([]net.Interface, error) {
				return []net.Interface{{Name: "lo", Flags: net.FlagLoopback}, {Name: "eth0", HardwareAddr: net.HardwareAddr{2, 0,
					0, 0, 0, 1}},
					{Name: "eth1", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 2}}}, nil
			},
		})
		done := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		go func() { p.Run(ctx); close(done) }()
		tick := time.NewTicker(time.Second)
		for range 65 {
			<-tick.C
			tree.Set(switchtest.Uptime, uint64(time.Since(began)/(10*time.Millisecond)))
			tree.Add(switchtest.InHC+"1", 125_000) // 1 Mb/s
			tree.Add(switchtest.OutPkts+"1", 1000)
			tree.Add(switchtest.OutDrop+"1", 10)
		}
		mu.Lock()
		if appended["good"] < 6 || appended["bad"] != 0 || problems["switch good"] != nil || problems["switch bad"] == nil {
			t.Errorf("%v, %v", appended, problems)
		}
		silent = false
		mu.Unlock()
		all := p.Switches()
		if len(all) != 2 || len(all[0].Ports) != 4 || all[1].Error == "" || strings.Contains(all[1].Error, "\x1b") {
			t.Errorf("%+v", all)
		}
		if one := all[0].Ports[0]; one.ReceiveRate < 0.9e6 || one.ReceiveRate > 1.1e6 || len(one.Attached) != 1 ||
			one.Attached[0].Interface != "eth0" || one.Attached[0].Source != "LLDP" {
			t.Errorf("the first port: %+v", one)
		}
		found, attached := p.Findings()
		if len(found) != 1 || len(attached) != 1 || found[0].Where != "switch good Gi0/1" {
			t.Errorf("%+v, %+v", found, attached)
		}
		for range 20 {
			<-tick.C
			tree.Set(switchtest.Uptime, uint64(time.Since(began)/(10*time.Millisecond)))
		}
		if _, attached := p.Findings(); len(attached) != 3 || attached[2] != (Attached{Switch: "bad",
			Port: "Gi0/3", Interface: "eth1", Source: "configuration"}) {
			t.Errorf("attached: %+v", attached)
		}
		mu.Lock()
		if appended["bad"] == 0 || problems["switch bad"] != nil {
			t.Errorf("a switch that came back: %v, %v", appended, problems)
		}
		mu.Unlock()
		stop()
		<-done
		mu.Lock()
		defer mu.Unlock()
		if closed != 2 {
			t.Errorf("%d opened, %d closed", opened, closed)
		}
	})
}

// TestConfig validates configurations, each with one mistake.
func TestConfig(t *testing.T) {
	ok := Config{Name: "core-1", Address: "192.0.2.1"}
	if err := Validate([]Config{ok}); err != nil {
		t.Error(err)
	}
	for says, spoil := range map[string]func(*Config){
		"no name":                   func(c *Config) { c.Name = "" },
		"write up to 64 letters":    func(c *Config) { c.Name = "core 1" },
		"no address":                func(c *Config) { c.Address = "" },
		"write HOST":                func(c *Config) { c.Address = "udp://x" },
		"keys without a user":       func(c *Config) { c.AuthKeyFile = "k" },
		"not both":                  func(c *Config) { c.User, c.CommunityFile = "u", "f" },
		"needs auth_key_file":       func(c *Config) { c.User, c.PrivacyKeyFile = "u", "f" },
		"write one of sha256":       func(c *Config) { c.User, c.AuthKeyFile, c.Auth = "u", "f", "rot13" },
		"every 1s: write 10s to 1m": func(c *Config) { c.Every = unit.Span(time.Second) },
		"is not a pattern":          func(c *Config) { c.Ports = []string{"Gi[0"} },
	} {
		c := ok
		spoil(&c)
		if err := Validate([]Config{c}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if err := Validate([]Config{ok, ok}); err == nil || !strings.Contains(err.Error(), "named twice") {
		t.Error(err)
	}
	if err := Validate(make([]Config, MaxSwitches+1)); err == nil {
		t.Error("too many switches are valid")
	}
}

// TestSecrets reads communities and keys from where they may be, and from nowhere else.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := func(name string) string { return map[string]string{"CORE": "from the environment"}[name] }
	base := Config{Name: "s", Address: "127.0.0.1"}
	for says, change := range map[string]func(*Config){
		"":                   func(c *Config) { c.CommunityFile = file("c", "secret\n") },
		"community_env":      func(c *Config) { c.CommunityEnv = "OTHER" },
		"community_file":     func(c *Config) { c.CommunityFile = filepath.Join(dir, "none") },
		"is empty":           func(c *Config) { c.CommunityFile = file("e", "\n") },
		"fewer than 8":       func(c *Config) { c.User, c.AuthKeyFile = "u", file("k", "short") },
		"privacy_key_file: ": func(c *Config) { c.User, c.AuthKeyFile, c.PrivacyKeyFile = "u", file("a", "longenough"), dir },
	} {
		c := base
		change(&c)
		s, err := c.session(env)
		if says == "" && err == nil {
			_ = s.Close()
			continue
		}
		if err == nil || says == "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}

// TestTrunk finds this host behind a trunk, which has a neighbour, and prefers a port that leads to
// this host alone.
func TestTrunk(t *testing.T) {
	tree := switchtest.Switch(4, true)
	tree.VLAN(1, 1, []int{1, 2, 3, 4}, []int{1, 2, 3, 4})
	tree.VLAN(20, 20, []int{1, 3}, nil)
	card := net.HardwareAddr{2, 0, 0, 0, 0, 7}
	p := New(Options{Switches: []Config{{Name: "core", Address: "192.0.2.1"}}, Host: "db-1",
		Open: func(Config) (Agent, error) { return tree, nil },
		Interfaces: func() ([]net.Interface, error) {
			return []net.Interface{{Name: "eth0", HardwareAddr: card}, {Name: "eth0.20", HardwareAddr: card}}, nil
		}})
	w := p.each[0]
	look := func() []Attached {
		t.Helper()
		w.neighbours = time.Time{}
		s, err := p.ask(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return p.attached(w, s)
	}
	if got := look(); len(got) != 0 {
		t.Errorf("before anything is learnt: %+v", got)
	}
	tree.Learnt(20, card, 1) // a trunk with web-1 as its neighbour
	asked := tree.Asked
	want := []Attached{{"core", "Gi0/1", "eth0", "bridge table of VLAN 20", true},
		{"core", "Gi0/1", "eth0.20", "bridge table of VLAN 20", true}}
	if got := look(); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	t.Logf("%d requests", tree.Asked-asked)
	tree.Learnt(1, card, 4)
	for i := range want {
		want[i].Port, want[i].Source, want[i].Trunk = "Gi0/4", "bridge table of VLAN 1", false
	}
	if got := look(); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

package mib_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/hub/internal/switches/switchtest"
)

func read(t *testing.T, a mib.Agent, o mib.Options) *mib.Snapshot {
	t.Helper()
	s, err := mib.Read(t.Context(), a, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func find(t *testing.T, s *mib.Snapshot, name string) *mib.Port {
	t.Helper()
	var names []string
	for i := range s.Ports {
		if s.Ports[i].Name == name {
			return &s.Ports[i]
		}
		names = append(names, s.Ports[i].Name)
	}
	t.Fatalf("no port %q among %q", name, names)
	return nil
}

// TestRecorded reads walks of real switches.
func TestRecorded(t *testing.T) {
	ask := mib.Options{Neighbours: true, Hosts: []net.HardwareAddr{{140, 22, 69, 193, 150, 122}, {196, 0, 173, 192, 196,
		87}}}

	// Empty ifName, ifHighSpeed without 64-bit counters; VLANs are no ports.
	s := read(t, switchtest.Load(t, "testdata/3com-4200.snmprec"), ask)
	if len(s.Ports) != 4 || s.Narrow != 4 || s.UptimeTicks != 130010261 || len(s.Warnings) > 0 {
		t.Errorf("3com: %d ports, %d narrow, uptime %d, %q", len(s.Ports), s.Narrow, s.UptimeTicks, s.Warnings)
	}
	p := find(t, s, "RMON Port 24 on unit 1")
	if !p.Up || p.Speed != 100e6 || p.Counters[mib.InBytes] != (mib.Count{Value: 1007385976, Width: 32}) ||
		p.Counters[mib.InBroadcast].Value != 3583973 || p.Duplex != "" || p.Address != nil {
		t.Errorf("3com: %+v", p)
	}
	if p := find(t, s, "RMON Port 07 on unit 1"); p.Up {
		t.Error("3com: a port without a link is up")
	}

	// All ports have one name, which the index makes unique; LLDP without names of systems.
	s = read(t, switchtest.Load(t, "testdata/cisco-sfe2000.snmprec"), ask)
	if len(s.Ports) != 6 || s.Boots != -1 {
		t.Errorf("SFE2000: %d ports, boots %d", len(s.Ports), s.Boots)
	}
	p = find(t, s, "Ethernet Interface #49")
	want := []mib.Neighbour{{Port: "e0:10:7f:04:4a:b3", Description: "eth0", Chassis: "e0:10:7f:04:4a:b0",
		Address: net.HardwareAddr{0xe0, 0x10, 0x7f, 0x04, 0x4a, 0xb3}}}
	if p.Duplex != mib.Full || !cmp.Equal(p.Neighbours, want) {
		t.Errorf("SFE2000: duplex %q, %s", p.Duplex, cmp.Diff(want, p.Neighbours))
	}
	if p := find(t, s, "Ethernet Interface #13"); len(p.Neighbours) != 1 || p.Neighbours[0].Chassis != "01:00:00:00:00" {
		t.Errorf("SFE2000: an address of another kind is %+v", p.Neighbours)
	}

	s = read(t, switchtest.Load(t, "testdata/advantech-eki-7428g.snmprec"), ask)
	if len(s.Ports) != 6 || s.Narrow != 0 {
		t.Errorf("Advantech: %d ports, %d narrow", len(s.Ports), s.Narrow)
	}
	p = find(t, s, "GigabitEthernet16")
	if p.Counters[mib.OutBytes] != (mib.Count{Value: 4187901459, Width: 64}) ||
		p.Counters[mib.OutUnicast].Value != 7558711 ||
		p.Counters[mib.OutBroadcast].Value != 131088 || p.Speed != 1e9 || len(p.Hosts) != 1 {
		t.Errorf("Advantech: %+v", p)
	}
	if p := find(t, s, "GigabitEthernet24"); p.Speed != 100e6 {
		t.Errorf("Advantech: a port of 100 Mb/s has %g", p.Speed)
	}
	if p := find(t, s, "LAG1"); p.Up || p.Speed != 0 {
		t.Errorf("Advantech: an aggregate without members: %+v", p)
	}
}

// TestSelection chooses ports by patterns of names and aliases, with slashes in them.
func TestSelection(t *testing.T) {
	a := switchtest.Switch(48, true)
	if n := len(read(t, a, mib.Options{}).Ports); n != 48 {
		t.Errorf("%d ports", n)
	}
	for pattern, want := range map[string]int{"Gi0/1": 1, "Gi0/4*": 10, "uplink": 1, "*": 48, "none": 0} {
		if n := len(read(t, a, mib.Options{Ports: []string{pattern}}).Ports); n != want {
			t.Errorf("%s: %d ports, want %d", pattern, n, want)
		}
	}
	s := read(t, a, mib.Options{Neighbours: true})
	if n := s.Ports[0].Neighbours; len(n) != 1 || n[0].System != "web-1.example.net" || n[0].Port != "eth0" {
		t.Errorf("neighbours: %+v", n)
	}
}

// spoiled passes answers through a function.
type spoiled struct {
	mib.Agent
	spoil func(asked []mib.OID, got []mib.Binding) ([]mib.Binding, error)
	calls int
}

func (s *spoiled) Bulk(ctx context.Context, oids []mib.OID, n int) ([]mib.Binding, error) {
	s.calls++
	got, err := s.Agent.Bulk(ctx, oids, n)
	if err != nil {
		return nil, err
	}
	return s.spoil(oids, got)
}

type refused struct{ error }

func (refused) Refusal() bool { return true }

// TestHostileTables reads agents that loop, cut, refuse and send too much: each ends, keeps what is
// good, and says in one sentence what is not.
func TestHostileTables(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func([]mib.OID, []mib.Binding) ([]mib.Binding, error)
		says  string
		ports int
	}{
		"the same again": {func(asked []mib.OID, _ []mib.Binding) ([]mib.Binding, error) {
			return []mib.Binding{{OID: asked[0], Value: int64(1)}}, nil
		}, "goes in circles", 0},
		"ever longer": {func(asked []mib.OID, _ []mib.Binding) ([]mib.Binding, error) {
			var got []mib.Binding
			for _, o := range asked {
				got = append(got, mib.Binding{OID: append(append(mib.OID{}, o...), 1), Value: int64(1)})
			}
			return got, nil
		}, "identifiers of more than 128 numbers", 0},
		"one row an answer": {func(asked []mib.OID, got []mib.Binding) ([]mib.Binding, error) {
			return got[:min(len(got), len(asked))], nil
		}, "", 48},
		"cut within a row": {func(asked []mib.OID, got []mib.Binding) ([]mib.Binding, error) {
			return got[:min(len(got), len(asked)+1)], nil
		}, "", 48},
		"nothing": {func([]mib.OID, []mib.Binding) ([]mib.Binding, error) { return nil, nil }, "has nothing behind", 0},
		"refuses": {func([]mib.OID, []mib.Binding) ([]mib.Binding, error) {
			return nil, refused{errors.New("error 5 of the agent")}
		}, "refuses a part of table", 0},
		"too big": {func(_ []mib.OID, got []mib.Binding) ([]mib.Binding, error) {
			if len(got) > 6 {
				return nil, mib.ErrTooBig
			}
			return got, nil
		}, "", 48},
		"always too big": {func([]mib.OID, []mib.Binding) ([]mib.Binding, error) { return nil, mib.ErrTooBig },
			"does not fit", 0},
		"foreign rows": {func(_ []mib.OID, got []mib.Binding) ([]mib.Binding, error) {
			for i := range got {
				got[i].OID = mib.OID{1, 3, 6, 1, 9, 9}
			}
			return got, nil
		}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := &spoiled{Agent: switchtest.Switch(48, true), spoil: c.spoil}
			s := read(t, a, mib.Options{Neighbours: true})
			if len(s.Ports) != c.ports || a.calls > 5000 {
				t.Errorf("%d ports, want %d, after %d requests", len(s.Ports), c.ports, a.calls)
			}
			if said := strings.Join(s.Warnings, "\n"); c.says == "" && said != "" || !strings.Contains(said, c.says) {
				t.Errorf("said %q, want %q", said, c.says)
			}
		})
	}
}

// TestHostileValues reads texts that a terminal would obey, indices that are none, and tables
// without end.
func TestHostileValues(t *testing.T) {
	a := switchtest.Switch(2, true)
	a.Set(switchtest.Name+"1", "\x1b]0;owned\x07Gi\u202e0/1\x00")
	a.Set("1.3.6.1.2.1.31.1.1.1.18.1", strings.Repeat("é", 5000))
	a.Set("1.3.6.1.2.1.2.2.1.3.4294967295", int64(6))
	a.Set("1.3.6.1.2.1.2.2.1.3.7.7", int64(6))
	a.Set(switchtest.Speed+"2", uint64(1<<63))
	s := read(t, a, mib.Options{Neighbours: true})
	if len(s.Ports) != 2 || strings.ContainsAny(s.Ports[0].Name, "\x1b\x07\u202e\x00") ||
		len([]rune(s.Ports[0].Alias)) > 64 {
		t.Errorf("%d ports, %q %q", len(s.Ports), s.Ports[0].Name, s.Ports[0].Alias)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "invalid index") {
		t.Errorf("said %q", s.Warnings)
	}
	big := switchtest.Switch(2, true)
	for i := 3; i < 700; i++ {
		big.Port(i, fmt.Sprintf("Gi1/%d", i), false)
	}
	if s := read(t, big, mib.Options{}); len(s.Ports) != mib.MostPorts || s.LeftOut != 699-mib.MostPorts {
		t.Errorf("%d ports, %d left out", len(s.Ports), s.LeftOut)
	}
	for i := range 5000 {
		big.Set(fmt.Sprintf("1.3.6.1.2.1.2.2.1.8.%d", 10000+i), int64(1))
	}
	if s := read(t, big, mib.Options{}); !strings.Contains(strings.Join(s.Warnings, "\n"), "more than 4096 rows") {
		t.Errorf("said %q", s.Warnings)
	}
}

// restarting loses its uptime while it is read.
type restarting struct{ *switchtest.Tree }

func (r restarting) Bulk(ctx context.Context, oids []mib.OID, n int) ([]mib.Binding, error) {
	r.Set(switchtest.Uptime, uint64(5))
	return r.Tree.Bulk(ctx, oids, n)
}

func TestRestartWhileRead(t *testing.T) {
	if _, err := mib.Read(t.Context(), restarting{switchtest.Switch(2, true)}, mib.Options{}); !errors.Is(err,
		mib.ErrRestarted) {
		t.Errorf("%v", err)
	}
	empty := new(switchtest.Tree)
	if _, err := mib.Read(t.Context(), empty, mib.Options{}); err == nil || !strings.Contains(err.Error(), "sysUpTime") {
		t.Errorf("an agent without a view: %v", err)
	}
}

// bytesAgent answers with what fuzzing gives.
type bytesAgent struct {
	data []byte
	n    int
}

func (b *bytesAgent) next() byte {
	if len(b.data) == 0 {
		return 0
	}
	b.n++
	return b.data[b.n%len(b.data)]
}

func (b *bytesAgent) value() any {
	switch b.next() % 6 {
	case 0:
		return uint64(b.next()) << (b.next() % 64)
	case 1:
		return int64(b.next()) - 128
	case 2:
		return b.data[:min(len(b.data), int(b.next()))]
	case 3:
		return mib.OID{1, uint32(b.next())}
	case 4:
		return []byte{b.next(), b.next(), b.next(), b.next(), b.next(), b.next()}
	}
	return nil
}

func (b *bytesAgent) Get(_ context.Context, oids []mib.OID) ([]mib.Binding, error) {
	var out []mib.Binding
	for _, o := range oids {
		out = append(out, mib.Binding{OID: o, Value: b.value()})
	}
	return out, nil
}

func (b *bytesAgent) Bulk(_ context.Context, oids []mib.OID, _ int) ([]mib.Binding, error) {
	var out []mib.Binding
	for range int(b.next()) % 12 {
		o := append(mib.OID{}, oids[int(b.next())%len(oids)]...)
		switch b.next() % 4 {
		case 0:
			o = append(o, uint32(b.next()))
		case 1:
			o[len(o)-1] += uint32(b.next() % 4)
		case 2:
			o = append(o, 0, uint32(b.next()), 1)
		}
		out = append(out, mib.Binding{OID: o, Value: b.value(), End: b.next()%16 == 0})
	}
	return out, nil
}

// FuzzRead reads an agent that answers anything: the reading ends within its bounds.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07"))
	f.Add([]byte("\x00\xff\x30\x0b\x01\x00\x02\x10\x1b]0;x\x07"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := mib.Read(t.Context(), &bytesAgent{data: b}, mib.Options{Neighbours: true,
			Hosts: []net.HardwareAddr{{2, 0, 0, 0, 0, 1}}})
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		for _, p := range s.Ports {
			if p.Name == "" || len([]rune(p.Name)) > 120 || seen[p.Name] {
				t.Fatalf("name %q", p.Name)
			}
			seen[p.Name] = true
		}
		if len(s.Ports) > mib.MostPorts {
			t.Fatalf("%d ports", len(s.Ports))
		}
	})
}

func FuzzParseOID(f *testing.F) {
	f.Add(".1.3.6.1")
	f.Add("1..2")
	f.Add("4294967296")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := mib.ParseOID(text)
		if err != nil {
			return
		}
		if again, err := mib.ParseOID(o.String()); err != nil || again.Compare(o) != 0 {
			t.Fatalf("%q: %v, %v", text, again, err)
		}
	})
}

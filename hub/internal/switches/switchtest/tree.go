package switchtest

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/linerate/linerate/hub/internal/switches/mib"
)

// Tree is what an agent has. Its methods may be called from several goroutines.
type Tree struct {
	mu     sync.Mutex
	oids   []mib.OID // sorted
	values map[string]any
	Asked  int // requests answered
}

// Set sets an object: a uint64, an int64, a string, []byte or mib.OID.
func (t *Tree) Set(oid string, v any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, err := mib.ParseOID(oid)
	if err != nil {
		panic(err)
	}
	if text, ok := v.(string); ok {
		v = []byte(text)
	}
	if t.values == nil {
		t.values = make(map[string]any)
	}
	if _, known := t.values[o.String()]; !known {
		i, _ := slices.BinarySearchFunc(t.oids, o, mib.OID.Compare)
		t.oids = slices.Insert(t.oids, i, o)
	}
	t.values[o.String()] = v
}

// Add adds to a counter.
func (t *Tree) Add(oid string, n uint64) {
	t.mu.Lock()
	v, _ := t.values[oid].(uint64)
	t.mu.Unlock()
	t.Set(oid, v+n)
}

// Delete removes the objects below an identifier.
func (t *Tree) Delete(prefix string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.oids = slices.DeleteFunc(t.oids, func(o mib.OID) bool {
		gone := strings.HasPrefix(o.String()+".", prefix+".")
		if gone {
			delete(t.values, o.String())
		}
		return gone
	})
}

// Get answers as an agent does.
func (t *Tree) Get(_ context.Context, oids []mib.OID) ([]mib.Binding, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Asked++
	var out []mib.Binding
	for _, o := range oids {
		b := mib.Binding{OID: o}
		if _, ok := slices.BinarySearchFunc(t.oids, o, mib.OID.Compare); ok {
			b.Value = t.values[o.String()]
		}
		out = append(out, b)
	}
	return out, nil
}

// Bulk answers as an agent does.
func (t *Tree) Bulk(_ context.Context, oids []mib.OID, repetitions int) ([]mib.Binding, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Asked++
	at := slices.Clone(oids)
	var out []mib.Binding
	for range repetitions {
		for i := range at {
			n, found := slices.BinarySearchFunc(t.oids, at[i], mib.OID.Compare)
			if found {
				n++
			}
			if n == len(t.oids) {
				out = append(out, mib.Binding{OID: at[i], End: true})
				continue
			}
			at[i] = t.oids[n]
			out = append(out, mib.Binding{OID: at[i], Value: t.values[at[i].String()]})
		}
	}
	return out, nil
}

// Close makes a tree the session of a poller.
func (t *Tree) Close() error { return nil }

// Load reads a file in the format of snmpsim.
func Load(tb testing.TB, file string) *Tree {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	t := new(Tree)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		part := strings.SplitN(line, "|", 3)
		if len(part) != 3 {
			tb.Fatalf("%s: %q", file, line)
		}
		var v any
		switch part[1] {
		case "2":
			v, err = strconv.ParseInt(part[2], 10, 64)
		case "65", "66", "67", "70":
			v, err = strconv.ParseUint(part[2], 10, 64)
		case "4":
			v = part[2]
		case "4x":
			v, err = hex.DecodeString(part[2])
		default:
			err = fmt.Errorf("type %s", part[1])
		}
		if err != nil {
			tb.Fatalf("%s: %q: %v", file, line, err)
		}
		t.Set(part[0], v)
	}
	return t
}

// Objects of a port, by the index behind.
const (
	Uptime  = "1.3.6.1.2.1.1.3.0"
	Boots   = "1.3.6.1.6.3.10.2.1.2.0"
	InHC    = "1.3.6.1.2.1.31.1.1.1.6."
	OutHC   = "1.3.6.1.2.1.31.1.1.1.10."
	InPkts  = "1.3.6.1.2.1.31.1.1.1.7."
	OutPkts = "1.3.6.1.2.1.31.1.1.1.11."
	In32    = "1.3.6.1.2.1.2.2.1.10."
	Out32   = "1.3.6.1.2.1.2.2.1.16."
	OutDrop = "1.3.6.1.2.1.2.2.1.19."
	InErr   = "1.3.6.1.2.1.2.2.1.14."
	FCS     = "1.3.6.1.2.1.10.7.2.1.3."
	Late    = "1.3.6.1.2.1.10.7.2.1.8."
	Duplex  = "1.3.6.1.2.1.10.7.2.1.19."
	Name    = "1.3.6.1.2.1.31.1.1.1.1."
	Speed   = "1.3.6.1.2.1.31.1.1.1.15."
	Broken  = "1.3.6.1.2.1.31.1.1.1.19." // ifCounterDiscontinuityTime
)

// Switch returns a switch with ports of 1 Gb/s, of which the last is an uplink of 10 Gb/s, and with
// a neighbour at the first. wide: with 64-bit counters.
func Switch(ports int, wide bool) *Tree {
	t := new(Tree)
	t.Set("1.3.6.1.2.1.1.1.0", "Simulated switch")
	t.Set("1.3.6.1.2.1.1.5.0", "sim-1")
	t.Set(Uptime, uint64(1000_00))
	t.Set(Boots, int64(3))
	for i := 1; i <= ports; i++ {
		t.Port(i, fmt.Sprintf("Gi0/%d", i), wide)
	}
	t.Set(fmt.Sprint(Speed, ports), uint64(10000))
	t.Set(fmt.Sprint("1.3.6.1.2.1.31.1.1.1.18.", ports), "uplink")
	const remote = "1.0.8802.1.1.2.1.4.1.1."
	t.Set("1.0.8802.1.1.2.1.3.7.1.2.1", int64(5))
	t.Set("1.0.8802.1.1.2.1.3.7.1.3.1", "Gi0/1")
	t.Set(remote+"4.0.1.1", int64(4))
	t.Set(remote+"5.0.1.1", []byte{2, 0, 0, 0, 0, 1})
	t.Set(remote+"6.0.1.1", int64(5))
	t.Set(remote+"7.0.1.1", "eth0")
	t.Set(remote+"9.0.1.1", "web-1.example.net")
	return t
}

// Port adds a port.
func (t *Tree) Port(i int, name string, wide bool) {
	set := func(column string, v any) { t.Set(column+strconv.Itoa(i), v) }
	set("1.3.6.1.2.1.2.2.1.2.", name)
	set("1.3.6.1.2.1.2.2.1.3.", int64(6))
	set("1.3.6.1.2.1.2.2.1.5.", uint64(1e9))
	set("1.3.6.1.2.1.2.2.1.6.", []byte{0, 0x1b, 0, 0, 0, byte(i)})
	set("1.3.6.1.2.1.2.2.1.7.", int64(1))
	set("1.3.6.1.2.1.2.2.1.8.", int64(1))
	set(Name, name)
	set(Speed, uint64(1000))
	set(Broken, uint64(0))
	set(Duplex, int64(3))
	for _, c := range []string{In32, Out32, OutDrop, InErr, FCS, Late, "1.3.6.1.2.1.2.2.1.13.", "1.3.6.1.2.1.2.2.1.20.",
		"1.3.6.1.2.1.2.2.1.11.", "1.3.6.1.2.1.2.2.1.17."} {
		set(c, uint64(0))
	}
	if wide {
		for _, c := range []string{InHC, OutHC, InPkts, OutPkts} {
			set(c, uint64(0))
		}
	}
}

// VLAN adds a VLAN with its ports, by number of the bridge, and the table of addresses that it
// uses.
func (t *Tree) VLAN(vlan, table int, members, untagged []int) {
	at := fmt.Sprint(".0.", vlan)
	t.Set(current+"3"+at, uint64(table))
	t.Set(current+"4"+at, PortList(members...))
	t.Set(current+"5"+at, PortList(untagged...))
}

const current = "1.3.6.1.2.1.17.7.1.4.2.1." // dot1qVlanCurrentTable, then column, time and VLAN

// PortList is how Q-BRIDGE-MIB writes a set of ports.
func PortList(ports ...int) []byte {
	list := make([]byte, 8)
	for _, p := range ports {
		list[(p-1)/8] |= 0x80 >> ((p - 1) % 8)
	}
	return list
}

// Learnt has the bridge know a host at a port, in a table of addresses.
func (t *Tree) Learnt(table int, host net.HardwareAddr, port int) {
	at := ""
	for _, b := range host {
		at += fmt.Sprint(".", b)
	}
	t.Set(fmt.Sprint("1.3.6.1.2.1.17.7.1.2.2.1.2.", table, at), int64(port))
}

package mib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/visible"
)

// MostPorts is how many ports of a switch are read.
const MostPorts = 512

// Options of a reading.
type Options struct {
	// Ports are patterns (path.Match) of names or aliases; empty: Ethernet ports and aggregates.
	Ports []string
	// Neighbours asks for LLDP as well, and for the ports of Hosts.
	Neighbours bool
	Hosts      []net.HardwareAddr
}

// Columns of ifTable and ifXTable.
const (
	ifDescr, ifType, ifSpeed, ifPhysAddress, ifAdminStatus, ifOperStatus = 2, 3, 5, 6, 7, 8

	ifName, ifHighSpeed, ifAlias, ifCounterDiscontinuityTime = 1, 15, 18, 19

	dot3StatsDuplexStatus = 19
)

// source is where a counter is read: a column with 64 bits of ifXTable, and one with 32 bits.
type source struct {
	wide   int
	entry  *OID
	narrow int
}

// sources of the counters, in their order.
var sources = [Counters]source{
	InBytes: {6, &ifEntry, 10}, OutBytes: {10, &ifEntry, 16},
	InUnicast: {7, &ifEntry, 11}, InMulticast: {8, &ifXEntry, 2}, InBroadcast: {9, &ifXEntry, 3},
	OutUnicast: {11, &ifEntry, 17}, OutMulticast: {12, &ifXEntry, 4}, OutBroadcast: {13, &ifXEntry, 5},
	InDiscards: {0, &ifEntry, 13}, OutDiscards: {0, &ifEntry, 19},
	InErrors: {0, &ifEntry, 14}, OutErrors: {0, &ifEntry, 20},
	FCSErrors: {0, &etherEntry, 3}, AlignmentErrors: {0, &etherEntry, 2}, SymbolErrors: {0, &etherEntry, 18},
	TooLong: {0, &etherEntry, 13}, InternalReceive: {0, &etherEntry, 16}, LateCollisions: {0, &etherEntry, 8},
	ExcessiveCollisions: {0, &etherEntry, 9}, CarrierSense: {0, &etherEntry, 11},
	InternalTransmit: {0, &etherEntry, 10},
	InPause:          {0, &pauseEntry, 3}, OutPause: {0, &pauseEntry, 4},
}

// columns returns the 32-bit columns of a table; only those without a 64-bit one unless all.
func columns(entry *OID, all bool) []int {
	var out []int
	for _, s := range sources {
		if s.entry == entry && (all || s.wide == 0) {
			out = append(out, s.narrow)
		}
	}
	return out
}

func wideColumns() []int {
	var out []int
	for _, s := range sources {
		if s.wide != 0 {
			out = append(out, s.wide)
		}
	}
	return out
}

// Read reads a switch.
func Read(ctx context.Context, a Agent, o Options) (*Snapshot, error) {
	began := time.Now()
	s := &Snapshot{Boots: -1}
	if err := s.readSystem(ctx, a); err != nil {
		return nil, err
	}
	read := func(entry OID, columns ...int) (Table, error) {
		t, notes, err := ReadTable(ctx, a, entry, columns...)
		s.Warnings = append(s.Warnings, notes...)
		return t, err
	}
	names, err := read(ifXEntry, ifName, ifAlias, ifHighSpeed, ifCounterDiscontinuityTime)
	if err != nil {
		return nil, err
	}
	facts, err := read(ifEntry, ifOperStatus, ifAdminStatus, ifType, ifDescr, ifSpeed, ifPhysAddress)
	if err != nil {
		return nil, err
	}
	s.makePorts(names, facts, o.Ports)
	// The counters without names and texts between them, so that they are of one moment.
	s.Time = time.Now()
	wide, err := read(ifXEntry, wideColumns()...)
	if err != nil {
		return nil, err
	}
	narrow := make(map[*OID]Table)
	for _, entry := range []*OID{&ifEntry, &etherEntry, &pauseEntry} {
		more := columns(entry, false)
		if entry == &etherEntry {
			more = append(more, dot3StatsDuplexStatus)
		}
		if narrow[entry], err = read(*entry, more...); err != nil {
			return nil, err
		}
	}
	s.Time = s.Time.Add(time.Since(s.Time) / 2)
	if s.narrowPorts(wide) {
		s.Time = time.Now()
		for _, entry := range []*OID{&ifEntry, &ifXEntry} {
			if narrow[entry], err = read(*entry, columns(entry, true)...); err != nil {
				return nil, err
			}
		}
		s.Time = s.Time.Add(time.Since(s.Time) / 2)
	}
	s.count(wide, narrow)
	if o.Neighbours {
		if err := s.readNeighbours(ctx, a, read, o.Hosts); err != nil {
			return nil, err
		}
	}
	if err := s.sameLife(ctx, a); err != nil {
		return nil, err
	}
	slices.Sort(s.Warnings)
	s.Warnings = slices.Compact(s.Warnings)
	s.Took = time.Since(began)
	return s, nil
}

// readSystem reads the scalars. sysUpTime must be there: without it no counter can be judged.
func (s *Snapshot) readSystem(ctx context.Context, a Agent) error {
	began := time.Now()
	got, err := a.Get(ctx, []OID{system.with(3, 0), system.with(5, 0), system.with(1, 0)})
	if err != nil {
		return err
	}
	up, ok := scalar(got, system.with(3, 0)).(uint64)
	if !ok {
		return errors.New("the agent does not say its uptime (sysUpTime): its view may not contain system and interfaces")
	}
	s.UptimeAt = began.Add(time.Since(began) / 2)
	s.UptimeTicks = uint32(up)
	s.Uptime = time.Duration(s.UptimeTicks) * 10 * time.Millisecond
	name, _ := scalar(got, system.with(5, 0)).([]byte)
	descr, _ := scalar(got, system.with(1, 0)).([]byte)
	s.Name, s.Description = text(name, 64), text(descr, 200)
	got, err = a.Get(ctx, []OID{engine.with(2, 0)})
	var refused refusal
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	switch v := scalar(got, engine.with(2, 0)).(type) {
	case int64:
		s.Boots = v
	case uint64:
		s.Boots = int64(v & 0x7fffffff)
	}
	return nil
}

// sameLife reports a restart of the agent since the reading began.
func (s *Snapshot) sameLife(ctx context.Context, a Agent) error {
	got, err := a.Get(ctx, []OID{system.with(3, 0)})
	if err != nil {
		return err
	}
	now, ok := scalar(got, system.with(3, 0)).(uint64)
	if !ok || uint32(now)-s.UptimeTicks > 1<<31 { // a wrap is a small step ahead
		return ErrRestarted
	}
	return nil
}

func scalar(got []Binding, oid OID) any {
	for _, b := range got {
		if slices.Equal(b.OID, oid) {
			return b.Value
		}
	}
	return nil
}

// text returns at most n runes of a text, without what a terminal or a page would obey.
func text(b []byte, n int) string {
	b = b[:min(len(b), 4*n)]
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1] // some agents send the zero byte of C
	}
	t := strings.TrimSpace(visible.Line(string(b)))
	if utf8.RuneCountInString(t) > n {
		t = string([]rune(t)[:n-1]) + "…"
	}
	return t
}

// Types of ports (IANAifType): ethernetCsmacd, fastEther, fastEtherFX, gigabitEthernet, aggregate.
var portTypes = []int{6, 62, 69, 117, 161}

func (s *Snapshot) makePorts(names, facts Table, patterns []string) {
	rows := make(map[string]bool)
	for _, t := range []Table{names, facts} {
		for _, column := range t {
			for index := range column {
				rows[index] = true
			}
		}
	}
	called := make(map[string]int) // how many ports have a name
	for index := range rows {
		called[nameOf(names, facts, index)]++
	}
	for _, index := range slices.SortedFunc(maps.Keys(rows), byOID) {
		n, err := strconv.ParseUint(index, 10, 32)
		if err != nil || n == 0 || n > 1<<31-1 {
			s.Warnings = append(s.Warnings, "the table of interfaces has rows with an invalid index, which are left out")
			continue
		}
		kind, _ := facts.number(ifType, index)
		p := Port{Index: uint32(n), Type: int(kind & 0xffff), Descr: text(facts.bytes(ifDescr, index), 64),
			Alias: text(names.bytes(ifAlias, index), 64), Address: hardware(facts.bytes(ifPhysAddress, index))}
		p.Name = nameOf(names, facts, index)
		for p.Name == "" || called[p.Name] > 1 { // again, if that is the name of another port
			p.Name = strings.TrimSpace(fmt.Sprintf("%s #%d", p.Name, p.Index))
			called[p.Name]++
		}
		admin, _ := facts.number(ifAdminStatus, index)
		oper, _ := facts.number(ifOperStatus, index)
		p.Enabled, p.Up = admin != 2, oper == 1 || oper == 5 // 5: dormant, up and waiting
		p.Speed = speed(names, facts, index)
		p.Discontinuity, _ = names.number(ifCounterDiscontinuityTime, index)
		if !p.wanted(patterns) {
			continue
		}
		if len(s.Ports) >= MostPorts {
			s.LeftOut++
			continue
		}
		s.Ports = append(s.Ports, p)
	}
	if s.LeftOut > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d ports beyond %d are left out: name the ones to keep in ports",
			s.LeftOut, MostPorts))
	}
}

// nameOf returns what a port is called; several may be called the same.
func nameOf(names, facts Table, index string) string {
	return cmp.Or(text(names.bytes(ifName, index), 60), text(facts.bytes(ifDescr, index), 60))
}

// speed prefers ifHighSpeed, which counts megabits; ifSpeed ends at 4.3 Gb/s.
func speed(names, facts Table, index string) float64 {
	if mega, _ := names.number(ifHighSpeed, index); mega > 0 && mega < 1e7 {
		return float64(mega) * 1e6
	}
	if bits, _ := facts.number(ifSpeed, index); bits < 1<<32-1 {
		return float64(bits)
	}
	return 0
}

func (p *Port) wanted(patterns []string) bool {
	if len(patterns) == 0 {
		return slices.Contains(portTypes, p.Type)
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		for _, name := range []string{p.Name, p.Alias, p.Descr} {
			// A / is a letter of names: path.Match would take it for a separator.
			if ok, _ := path.Match(flat(pattern), flat(name)); ok && name != "" {
				return true
			}
		}
		return false
	})
}

func flat(name string) string { return strings.ReplaceAll(name, "/", "\x01") }

func hardware(b []byte) net.HardwareAddr {
	if len(b) != 6 || [6]byte(b) == [6]byte{} {
		return nil
	}
	return net.HardwareAddr(slices.Clone(b))
}

// narrowPorts counts the ports without 64-bit bytes.
func (s *Snapshot) narrowPorts(wide Table) bool {
	for _, p := range s.Ports {
		if _, ok := wide.number(sources[InBytes].wide, p.key()); !ok {
			s.Narrow++
		}
	}
	return s.Narrow > 0
}

func (p *Port) key() string { return strconv.FormatUint(uint64(p.Index), 10) }

func (s *Snapshot) count(wide Table, narrow map[*OID]Table) {
	for i := range s.Ports {
		p := &s.Ports[i]
		for c, from := range sources {
			if v, ok := wide.number(from.wide, p.key()); ok && from.wide != 0 {
				p.Counters[c] = Count{v, 64}
			} else if v, ok := narrow[from.entry].number(from.narrow, p.key()); ok {
				p.Counters[c] = Count{v & (1<<32 - 1), 32}
			}
		}
		switch mode, _ := narrow[&etherEntry].number(dot3StatsDuplexStatus, p.key()); mode {
		case 2:
			p.Duplex = Half
		case 3:
			p.Duplex = Full
		}
	}
}

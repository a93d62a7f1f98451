package mib

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Columns of LLDP-MIB.
const (
	remChassisSubtype, remChassis, remPortSubtype, remPort, remPortDescr, remSystem = 4, 5, 6, 7, 8, 9

	locPortSubtype, locPort, locPortDescr = 2, 3, 4
)

// Subtypes of identifiers (IEEE 802.1AB-2005, tables 9-2 and 9-3).
const (
	chassisMAC = 4
	portAlias  = 1
	portMAC    = 3
	portName   = 5
)

const mostNeighbours = 8 // of one port

// readNeighbours reads LLDP, the VLANs of ports, and the ports where the bridge has learnt hosts.
// Many agents have none of these, which is no fault.
func (s *Snapshot) readNeighbours(ctx context.Context, a Agent, read func(OID, ...int) (Table, error),
	hosts []net.HardwareAddr) error {
	remote, err := read(lldpRemote, remChassisSubtype, remChassis, remPortSubtype, remPort, remPortDescr, remSystem)
	if err != nil {
		return err
	}
	bridge, err := read(bridgePort, 2)
	if err != nil {
		return err
	}
	if len(remote[remChassis]) > 0 || len(remote[remPort]) > 0 {
		local, err := read(lldpLocal, locPortSubtype, locPort, locPortDescr)
		if err != nil {
			return err
		}
		s.addNeighbours(remote, local, bridge)
	}
	return s.addHosts(ctx, a, read, bridge, hosts)
}

func (s *Snapshot) addNeighbours(remote, local, bridge Table) {
	rows := make(map[string]bool)
	for _, c := range []int{remChassis, remPort, remSystem} {
		for index := range remote[c] {
			rows[index] = true
		}
	}
	for _, index := range slices.SortedFunc(maps.Keys(rows), byOID) {
		o, err := ParseOID(index)
		if err != nil || len(o) != 3 { // time mark, local port, number
			continue
		}
		p := s.localPort(strconv.FormatUint(uint64(o[1]), 10), local, bridge)
		if p == nil || len(p.Neighbours) >= mostNeighbours {
			continue
		}
		chassisKind, _ := remote.number(remChassisSubtype, index)
		portKind, _ := remote.number(remPortSubtype, index)
		n := Neighbour{System: text(remote.bytes(remSystem, index), 64),
			Description: text(remote.bytes(remPortDescr, index), 64),
			Chassis:     identifier(remote.bytes(remChassis, index), chassisKind == chassisMAC),
			Port:        identifier(remote.bytes(remPort, index), portKind == portMAC)}
		if portKind == portMAC {
			n.Address = hardware(remote.bytes(remPort, index))
		}
		if n.Address == nil && chassisKind == chassisMAC {
			n.Address = hardware(remote.bytes(remChassis, index))
		}
		p.Neighbours = append(p.Neighbours, n)
	}
}

// identifier returns an address or a text; bytes that are no text become hexadecimal.
func identifier(b []byte, address bool) string {
	if h := hardware(b); address && h != nil {
		return h.String()
	}
	if trimmed := bytes.TrimRight(b, "\x00"); !utf8.Valid(trimmed) ||
		bytes.ContainsFunc(trimmed, func(r rune) bool { return r < ' ' }) {
		return net.HardwareAddr(b[:min(len(b), 20)]).String()
	}
	return text(b, 64)
}

// localPort returns the port of a number of LLDP, which agents choose in four ways: they give a
// name, an address, the number of the bridge, or ifIndex.
func (s *Snapshot) localPort(number string, local, bridge Table) *Port {
	id := text(local.bytes(locPort, number), 64)
	kind, _ := local.number(locPortSubtype, number)
	find := func(is func(*Port) bool) *Port {
		var found *Port
		for i := range s.Ports {
			if is(&s.Ports[i]) {
				if found != nil {
					return nil // of two, none is known
				}
				found = &s.Ports[i]
			}
		}
		return found
	}
	if id != "" && kind != portMAC {
		if p := find(func(p *Port) bool { return p.Name == id || kind == portAlias && p.Alias == id }); p != nil {
			return p
		}
		if p := find(func(p *Port) bool { return p.Descr == id }); p != nil {
			return p
		}
	}
	if address := hardware(local.bytes(locPort, number)); kind == portMAC && address != nil {
		if p := find(func(p *Port) bool { return slices.Equal(p.Address, address) }); p != nil {
			return p
		}
	}
	if about := text(local.bytes(locPortDescr, number), 64); about != "" && kind != portName {
		if p := find(func(p *Port) bool { return p.Descr == about || p.Name == about }); p != nil {
			return p
		}
	}
	if index, ok := bridge.number(2, number); ok {
		return find(func(p *Port) bool { return uint64(p.Index) == index })
	}
	return find(func(p *Port) bool { return p.key() == number })
}

// addHosts asks the bridge where it has learnt addresses: the tables of its VLANs, and the one
// without VLANs for what is in none of these.
func (s *Snapshot) addHosts(ctx context.Context, a Agent, read func(OID, ...int) (Table, error), bridge Table,
	hosts []net.HardwareAddr) error {
	ports := s.numbered(bridge)
	tables, err := s.readVLANs(read, ports)
	if err != nil {
		return err
	}
	if err := s.addLearnt(ctx, a, tables, ports, hosts); err != nil {
		return err
	}
	for _, address := range hosts[:min(len(hosts), mostHosts)] {
		if len(address) != 6 || s.knows(address) {
			continue
		}
		oid := addressed(bridgeFDB.with(2), address)
		got, err := a.Get(ctx, []OID{oid})
		var refused refusal
		if errors.As(err, &refused) {
			return nil
		}
		if err != nil {
			return err
		}
		if number, ok := scalar(got, oid).(int64); ok && number > 0 {
			ports[uint64(number)].learn(Learnt{Address: address})
		}
	}
	return nil
}

// knows reports whether a host was found at a port.
func (s *Snapshot) knows(address net.HardwareAddr) bool {
	return slices.ContainsFunc(s.Ports, func(p Port) bool {
		return slices.ContainsFunc(p.Hosts, func(h Learnt) bool { return slices.Equal(h.Address, address) })
	})
}

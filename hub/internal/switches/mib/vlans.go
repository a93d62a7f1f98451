package mib

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// VLANs are numbers of VLANs as ascending ranges.
type VLANs []VLANRange

// VLANRange is some VLANs in a row, both ends included.
type VLANRange struct{ First, Last int }

// mostVLAN is the largest number of a VLAN (IEEE 802.1Q).
const mostVLAN = 4094

// add adds a number that is larger than all.
func (v *VLANs) add(n int) {
	if last := len(*v) - 1; last >= 0 && (*v)[last].Last == n-1 {
		(*v)[last].Last = n
		return
	}
	*v = append(*v, VLANRange{n, n})
}

// Has reports whether a VLAN is among them.
func (v VLANs) Has(n int) bool {
	return slices.ContainsFunc(v, func(r VLANRange) bool { return r.First <= n && n <= r.Last })
}

// String returns them as switches write them: "1,10-20".
func (v VLANs) String() string {
	var words []string
	for _, r := range v {
		word := strconv.Itoa(r.First)
		if r.Last > r.First {
			word += "-" + strconv.Itoa(r.Last)
		}
		words = append(words, word)
	}
	return strings.Join(words, ",")
}

// Learnt is a host whose address the bridge has learnt at a port.
type Learnt struct {
	Address net.HardwareAddr
	VLAN    int // the first in which it was learnt; 0: the bridge does not say
}

// Columns of Q-BRIDGE-MIB.
const (
	currentFDB, currentEgress, currentUntagged = 3, 4, 5

	staticEgress, staticUntagged = 2, 4

	fdbPort = 2
)

// numbered returns the ports by their number of the bridge, which without a row is ifIndex.
func (s *Snapshot) numbered(bridge Table) map[uint64]*Port {
	byIndex, byNumber := make(map[uint64]*Port), make(map[uint64]*Port)
	for i := range s.Ports {
		byIndex[uint64(s.Ports[i].Index)] = &s.Ports[i]
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; bridge[2][p.key()] == nil {
			byNumber[uint64(p.Index)] = p
		}
	}
	for number := range bridge[2] {
		n, err := strconv.ParseUint(number, 10, 32)
		index, ok := bridge.number(2, number)
		if p := byIndex[index]; err == nil && ok && p != nil {
			byNumber[n] = p
		}
	}
	return byNumber
}

// readVLANs reads which ports carry which VLANs, and returns the VLAN of each table of addresses; 0
// where several share one.
func (s *Snapshot) readVLANs(read func(OID, ...int) (Table, error), ports map[uint64]*Port) (map[uint32]int, error) {
	// The first part of the index is a time: under 0 are all rows, and under later ones some agents
	// repeat them.
	const always = 0
	var all [currentUntagged + 1]Table
	for _, column := range []uint32{currentFDB, currentEgress, currentUntagged} {
		var err error
		if all[column], err = read(vlanCurrent.with(column), always); err != nil {
			return nil, err
		}
	}
	egress, untagged := all[currentEgress][always], all[currentUntagged][always]
	if len(egress) == 0 { // an agent that has only what an operator configured
		configured, err := read(vlanStatic, staticEgress, staticUntagged)
		if err != nil {
			return nil, err
		}
		egress, untagged = configured[staticEgress], configured[staticUntagged]
	}
	tables := make(map[uint32]int)
	for _, index := range slices.SortedFunc(maps.Keys(egress), byOID) {
		vlan, err := strconv.Atoi(index)
		if err != nil || vlan < 1 || vlan > mostVLAN {
			continue
		}
		members, _ := egress[index].([]byte)
		bare, _ := untagged[index].([]byte)
		for number, p := range ports {
			switch {
			case !isMember(members, number):
			case isMember(bare, number):
				p.Untagged.add(vlan)
			default:
				p.Tagged.add(vlan)
			}
		}
		table, ok := all[currentFDB].number(always, index)
		if !ok {
			table = uint64(vlan) // what most switches do, each VLAN with a table of its own
		}
		if _, shared := tables[uint32(table)]; shared {
			tables[uint32(table)] = 0
		} else {
			tables[uint32(table)] = vlan
		}
	}
	return tables, nil
}

// isMember reports whether a port is in a PortList: the first port is the highest bit of the first
// byte.
func isMember(list []byte, number uint64) bool {
	at := (number - 1) / 8
	return number > 0 && at < uint64(len(list)) && list[at]&(0x80>>((number-1)%8)) != 0
}

// Bounds of asking for hosts.
const (
	mostHosts   = 16
	mostLookups = 2048 // of one address in one table
	lookupsEach = 24   // of one request: an answer of a kilobyte
)

// addLearnt asks each table of addresses for hosts.
func (s *Snapshot) addLearnt(ctx context.Context, a Agent, tables map[uint32]int, ports map[uint64]*Port,
	hosts []net.HardwareAddr) error {
	type lookup struct {
		oid  OID
		host net.HardwareAddr
		vlan int
	}
	var left []lookup
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		for _, host := range hosts[:min(len(hosts), mostHosts)] {
			if len(host) == 6 {
				left = append(left, lookup{addressed(vlanFDB.with(fdbPort, table), host), host, tables[table]})
			}
		}
	}
	if len(left) > mostLookups {
		left = left[:mostLookups]
		s.Warnings = append(s.Warnings, "the bridge has more tables of addresses than are searched for this host")
	}
	for each := lookupsEach; len(left) > 0; {
		some := left[:min(each, len(left))]
		var oids []OID
		for _, l := range some {
			oids = append(oids, l.oid)
		}
		got, err := a.Get(ctx, oids)
		var refused refusal
		switch {
		case errors.Is(err, ErrTooBig) && each > 1:
			each /= 2
			continue
		case errors.Is(err, ErrTooBig) || errors.As(err, &refused):
			return nil
		case err != nil:
			return err
		}
		for _, l := range some {
			if number, ok := scalar(got, l.oid).(int64); ok && number > 0 {
				ports[uint64(number)].learn(Learnt{l.host, l.vlan})
			}
		}
		left = left[len(some):]
	}
	return nil
}

// learn adds a host to a port; nil: a port that is not read.
func (p *Port) learn(l Learnt) {
	if p != nil && !slices.ContainsFunc(p.Hosts, func(h Learnt) bool { return slices.Equal(h.Address, l.Address) }) {
		p.Hosts = append(p.Hosts, l)
	}
}

// addressed returns the identifier of a row with a hardware address as its index.
func addressed(column OID, host net.HardwareAddr) OID {
	for _, b := range host {
		column = append(column, uint32(b))
	}
	return column
}

package read

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// isOf refuses an address of the other version of IP. Without a header the first address says
// which program the rules are of.
func (x *xtReader) isOf(r ruleset.Range) error {
	family := "ip6"
	if r.First.Addr().Is4() {
		family = "ip"
	}
	if x.family == "" {
		x.family, x.table.Family = family, family
	}
	if x.table.Family != family {
		return errors.New("not an address of the table's family")
	}
	return nil
}

func xtAddress(s string) (ruleset.Range, error) {
	if address, mask, ok := strings.Cut(s, "/"); ok && strings.Contains(mask, ".") {
		m, err := netip.ParseAddr(mask)
		if err != nil || !m.Is4() {
			return ruleset.Range{}, fmt.Errorf("mask %q", mask)
		}
		four := m.As4()
		zeros := ^binary.BigEndian.Uint32(four[:])
		if zeros&(zeros+1) != 0 {
			return ruleset.Range{}, fmt.Errorf("mask %q has gaps", mask)
		}
		s = fmt.Sprintf("%s/%d", address, bits.LeadingZeros32(zeros))
	}
	return valueOf(ruleset.Source, s)
}

func xtAddressRange(s string) (ruleset.Range, error) {
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		to = from
	}
	a, err := valueOf(ruleset.Source, from)
	if err != nil {
		return a, err
	}
	b, err := valueOf(ruleset.Source, to)
	if err == nil && a.First.Compare(b.Last) > 0 {
		err = fmt.Errorf("range %q", s)
	}
	return ruleset.Range{First: a.First, Last: b.Last}, err
}

// xtPorts reads a port or two with a colon, of which either may lack.
func xtPorts(s string) (ruleset.Range, error) {
	from, to, ok := strings.Cut(s, ":")
	if !ok {
		return valueOf(ruleset.SourcePort, s)
	}
	r := ruleset.Universe(ruleset.SourcePort)
	if from != "" {
		a, err := valueOf(ruleset.SourcePort, from)
		if err != nil {
			return r, err
		}
		r.First = a.First
	}
	if to != "" {
		b, err := valueOf(ruleset.SourcePort, to)
		if err != nil {
			return r, err
		}
		r.Last = b.Last
	}
	if r.First.Compare(r.Last) > 0 {
		return r, fmt.Errorf("ports %q", s)
	}
	return r, nil
}

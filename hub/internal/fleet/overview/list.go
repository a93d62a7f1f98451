package overview

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/report"
)

// Page is a page of hosts: linerate.hub.fleet-hosts/1.
type Page struct {
	Selection string             `json:"selection"`
	Order     Measure            `json:"order"` // empty: by name
	Selected  int                `json:"selected_hosts"`
	First     int                `json:"first"` // place of the first host of this page in the selection, from 1
	Hosts     []report.FleetHost `json:"hosts"`
	Next      string             `json:"next,omitempty"`
}

// List returns a page of the hosts of a selection: by name, or the highest of a measure first.
// after is the Next of the page before. An error is one of the selection.
func (s *Source) List(text string, order Measure, after string, limit int) (*Page, error) {
	chosen, err := s.choose(text)
	if err != nil {
		return nil, err
	}
	limit = min(cmp.Or(max(limit, 0), 50), MostListed)
	p := &Page{Selection: text, Order: order, Selected: len(chosen), First: 1, Hosts: []report.FleetHost{}}
	if order != "" {
		sign := 1.0
		if order == Rate {
			sign = -1
		}
		type valued struct {
			value float64
			known bool
			host  inventory.Host
		}
		all := make([]valued, 0, len(chosen))
		for i := range chosen {
			v, ok := s.value(&chosen[i], order)
			all = append(all, valued{sign * v, ok, chosen[i]})
		}
		sorting.StableFunc(all, func(a, b valued) int {
			if a.known != b.known {
				if a.known {
					return -1
				}
				return 1
			}
			return cmp.Compare(b.value, a.value)
		})
		chosen = make([]inventory.Host, len(all))
		for i := range all {
			chosen[i] = all[i].host
		}
	}
	from := place(chosen, order, after)
	p.First = from + 1
	for i := from; i < len(chosen) && len(p.Hosts) < limit; i++ {
		p.Hosts = append(p.Hosts, hostOf(&chosen[i]))
	}
	if next := from + len(p.Hosts); next < len(chosen) && next > from {
		last := &chosen[next-1]
		p.Next = strconv.Itoa(next) + " " + last.Name + " " + last.ID
	}
	return p, nil
}

// place returns where a page begins: after the host of the cursor, or where that host would be.
func place(chosen []inventory.Host, order Measure, after string) int {
	if after == "" {
		return 0
	}
	at, rest, _ := strings.Cut(after, " ")
	n, err := strconv.Atoi(at)
	if err != nil || n < 0 {
		return 0
	}
	key := func(h *inventory.Host) string { return h.Name + " " + h.ID }
	for i := range chosen {
		if key(&chosen[i]) == rest {
			return i + 1
		}
	}
	if order == "" { // the host has gone; the order of names has not changed
		for i := range chosen {
			if key(&chosen[i]) > rest {
				return i
			}
		}
	}
	return min(n, len(chosen))
}

func hostOf(h *inventory.Host) report.FleetHost {
	one := report.FleetHost{State: h.State, Groups: h.Groups, Labels: h.Labels}
	Describe(&one, h)
	return one
}

// Describe fills in what the inventory knows of a host. State, groups and labels are those of the
// register.
func Describe(one *report.FleetHost, h *inventory.Host) {
	one.ID, one.Name, one.Class, one.Version, one.Differs = h.ID, h.Name, h.Class, h.Version, h.Differs
	if !h.Last.IsZero() {
		last := h.Last.UTC()
		one.LastSeen = &last
	}
	if h.Facts != nil {
		one.Findings, one.JournalNotRead = h.Facts.Findings, h.Facts.JournalNotRead
		for _, k := range h.Facts.Kept {
			if k.Drifted() {
				one.Drifted = append(one.Drifted, k.Knob)
			}
		}
	}
}

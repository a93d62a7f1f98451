package ceiling

import (
	"fmt"
	"math"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Moderated describes how the throttle of one NIC of the e1000 family limits requests and answers,
// and the known hazards of its settings.
type Moderated struct {
	Interface  string `json:"interface"`
	Controller string `json:"controller,omitempty"` // 82547, …; absent: not one of e1000's, or not known
	Throttle   string `json:"throttle"`             // in words
	// The highest interrupt rate of the card, and the highest rate at which one connection gets
	// answers to consecutive requests; absent: the throttle bounds neither.
	InterruptsPerSec   float64  `json:"interrupts_per_second,omitempty"`
	TransactionsPerSec float64  `json:"transactions_per_second,omitempty"`
	Why                string   `json:"why"`
	Hazards            []Hazard `json:"hazards,omitempty"`
}

// Hazard is one of moderation.Hazards, with the key names of documents.
type Hazard struct {
	Parameter string              `json:"parameter"`
	Value     uint32              `json:"value"`
	Severity  moderation.Severity `json:"severity"` // hang, harmful, ignored, refused, unsuited
	Why       string              `json:"why"`
	Source    string              `json:"source"`
}

// Moderation judges every card of the e1000 family whose throttle ethtool shows. For other cards it
// is not known when their timers start. An emulated card of this family respects its throttle as
// the real one would, so it is judged too.
func Moderation(s *host.Snapshot) []Moderated {
	ports := make(map[string]int)
	for i := range s.Interfaces {
		ports[s.Interfaces[i].Driver]++
	}
	var all []Moderated
	for i := range s.Interfaces {
		dev := &s.Interfaces[i]
		usecs, known := dev.Coalesce["rx-usecs"]
		throttle, err := moderation.FromUsecs(moderation.Driver(dev.Driver), usecs)
		if !known || err != nil {
			continue
		}
		card := moderation.Card{Driver: moderation.Driver(dev.Driver), Ports: ports[dev.Driver]}
		if dev.Card != nil {
			card.Controller = moderation.ControllerOf(dev.Card.PCIID)
		}
		m := Moderated{
			Interface: dev.Name, Controller: card.Controller, Throttle: throttle.String(),
			Why: fmt.Sprintf("ethtool -c %s: rx-usecs %d; without a throttle each frame may interrupt at once",
				dev.Name, usecs),
		}
		if _, most := throttle.Bounds(); !math.IsInf(float64(most), 1) {
			interval := most.Interval()
			_, m.TransactionsPerSec = moderation.TransactionRate(0, interval, 0)
			m.InterruptsPerSec = float64(most)
			m.Why = fmt.Sprintf(
				"ethtool -c %s: rx-usecs %d, at least %s from one interrupt to the next; "+
					"a request and its answer take one at this end (1 / interval)",
				dev.Name, usecs, unit.FormatSeconds(interval.Seconds()))
		}
		// A missing parameter would mean the module's default, which says nothing about a running
		// card; so the parameters that ethtool shows are given.
		given := map[string]uint32{"InterruptThrottleRate": throttle.Parameter()}
		if f, ok := dev.Features["rx-checksum"]; ok && !f.On {
			given["XsumRX"] = 0
		}
		for _, h := range moderation.Hazards(card, given) {
			m.Hazards = append(m.Hazards, Hazard(h))
		}
		all = append(all, m)
	}
	return all
}

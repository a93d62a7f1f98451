package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/lab/link"
)

// Topology names how hosts are joined.
type Topology string

// The topologies. The link of the world is the last hop, the one at far's interface.
const (
	Pair   Topology = "pair"   // near – far
	Router Topology = "router" // near – router – far
)

// Setting is one tunable with its value, in the project's knob names: sysctl:…, route:…/window,
// link:…/mtu, ethtool:…/feature.….
type Setting struct {
	Knob  string `json:"knob"`
	Value string `json:"value"`
}

// World describes hosts and how they are joined.
type World struct {
	Topology Topology `json:"topology"`
	Link     *Link    `json:"link,omitempty"` // nil: a plain veth, as fast as the CPU
	// Card replaces the link: the driver of two cards of this machine on one wire, as in a guest.
	Card string `json:"card,omitempty"`
	// TC has lines for tc(8) -batch by host name, which a staged world uses at every level: its
	// rate, its delay.
	TC map[string][]string `json:"tc,omitempty"`
	// Settings are applied when the world comes up, by host name; "all" means every host.
	Settings map[string][]Setting `json:"settings,omitempty"`
}

// Link is an emulated link. Without ToNear both directions have the parameters of ToFar.
type Link struct {
	ToFar  link.Params  `json:"to_far"`
	ToNear *link.Params `json:"to_near,omitempty"`
}

// Both returns the parameters of the two directions. Package link derives a seed for each from
// Seed.
func (l *Link) Both() (toFar, toNear link.Params) {
	if l.ToNear == nil {
		return l.ToFar, l.ToFar
	}
	return l.ToFar, *l.ToNear
}

// Pins returns the settings of one host: sysctls, and the settings of devices and routes, which are
// applied once those exist.
func (w World) Pins(host string) (sysctls, ofDevices []Setting) {
	for _, s := range slices.Concat(w.Settings["all"], w.Settings[host]) {
		if strings.HasPrefix(s.Knob, "sysctl:") {
			sysctls = append(sysctls, s)
		} else {
			ofDevices = append(ofDevices, s)
		}
	}
	return sysctls, ofDevices
}

// Check returns the first error of a world, or nil.
func (w World) Check() error {
	hosts, err := w.hosts()
	if err != nil {
		return err
	}
	if w.Link != nil {
		toFar, toNear := w.Link.Both()
		if err := errors.Join(toFar.Check(), toNear.Check()); err != nil {
			return err
		}
	}
	if w.Card != "" && w.Link != nil {
		return errors.New("a hop has either a link or cards")
	}
	for name := range w.TC {
		if !slices.Contains(hosts, name) {
			return fmt.Errorf("tc on host %q: a %s world has no such host", name, w.Topology)
		}
	}
	for name := range w.Settings {
		if name != "all" && !slices.Contains(hosts, name) {
			return fmt.Errorf("settings of host %q: a %s world has no such host", name, w.Topology)
		}
	}
	return nil
}

// hosts returns the names of the world's hosts, from near to far.
func (w World) hosts() ([]string, error) {
	switch w.Topology {
	case Pair:
		return []string{"near", "far"}, nil
	case Router:
		return []string{"near", "router", "far"}, nil
	}
	return nil, fmt.Errorf("world %q: want %s or %s", w.Topology, Pair, Router)
}

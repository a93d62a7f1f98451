package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/lab/link"
)

// ErrNotSupported is answered where the OS has no namespaces.
var ErrNotSupported = errors.New("practice worlds need Linux namespaces")

// ErrNoNamespaces is answered where the kernel or the container forbids namespaces; the error around it says what to do.
var ErrNoNamespaces = errors.New("namespaces are not permitted here")

// Topology names how hosts are joined.
type Topology string

// The topologies. The link of the world is the last hop, the one at far's interface.
const (
	Pair   Topology = "pair"   // near – far
	Router Topology = "router" // near – router – far
)

// Setting is one tunable with its value, in the project's knob names: sysctl:…, route:…/window, link:…/mtu, ethtool:…/feature.….
type Setting struct {
	Knob  string `json:"knob"`
	Value string `json:"value"`
}

// World describes hosts and how they are joined.
type World struct {
	Topology Topology `json:"topology"`
	Link     *Link    `json:"link,omitempty"` // nil: a plain veth, as fast as the CPU
	Card     string   `json:"card,omitempty"` // in place of a link: the driver of two cards of this machine that are on one wire, as in a guest
	// TC are lines for tc(8) by host name, as in a file for its -batch, that belong to a staged world at every level: its rate, its delay.
	TC       map[string][]string  `json:"tc,omitempty"`
	Settings map[string][]Setting `json:"settings,omitempty"` // by host name, "all" for every host: pinned when the world comes up
}

// Link is an emulated link. ToNear may be left out and is then the same as ToFar.
type Link struct {
	ToFar  link.Params  `json:"to_far"`
	ToNear *link.Params `json:"to_near,omitempty"`
}

// both gives the parameters of the two directions; a Seed of its own for each is package link's business.
func (l *Link) both() (toFar, toNear link.Params) {
	if l.ToNear == nil {
		return l.ToFar, l.ToFar
	}
	return l.ToFar, *l.ToNear
}

// pins are the settings of one host of the world: sysctls, and those that belong to a device or a route and come when these are there.
func (w World) pins(host string) (sysctls, ofDevices []Setting) {
	for _, s := range slices.Concat(w.Settings["all"], w.Settings[host]) {
		if strings.HasPrefix(s.Knob, "sysctl:") {
			sysctls = append(sysctls, s)
		} else {
			ofDevices = append(ofDevices, s)
		}
	}
	return sysctls, ofDevices
}

// Check says what is wrong with a world, or nil.
func (w World) Check() error {
	plan, err := w.plan()
	if err != nil {
		return err
	}
	if w.Link != nil {
		toFar, toNear := w.Link.both()
		if err := errors.Join(toFar.Check(), toNear.Check()); err != nil {
			return err
		}
	}
	if w.Card != "" && w.Link != nil {
		return errors.New("a hop is either a link or cards")
	}
	for name := range w.TC {
		if !slices.ContainsFunc(plan.hosts, func(h hostPlan) bool { return h.name == name }) {
			return fmt.Errorf("tc on host %q: a %s world has no such host", name, w.Topology)
		}
	}
	for name := range w.Settings {
		if name != "all" && !slices.ContainsFunc(plan.hosts, func(h hostPlan) bool { return h.name == name }) {
			return fmt.Errorf("settings of host %q: a %s world has no such host", name, w.Topology)
		}
	}
	return nil
}

// plan is a topology with addresses. All private and all the same in every world: worlds do not see each other.
type plan struct {
	hosts []hostPlan
	hops  []hop
}

type hostPlan struct {
	name    string
	address string // the IPv4 address by which others know it
	forward bool
	routes  []routePlan
}

type routePlan struct{ destination, gateway string }

// hop joins two hosts; the world's link is on the hop marked so.
type hop struct {
	ends [2]end
	link bool
}

type end struct {
	host, device string
	addresses    []string // CIDR
}

func (w World) plan() (plan, error) {
	switch w.Topology {
	case Pair:
		return plan{
			hosts: []hostPlan{{name: "near", address: "10.77.0.1"}, {name: "far", address: "10.77.0.2"}},
			hops: []hop{{link: true, ends: [2]end{
				{"near", "eth0", []string{"10.77.0.1/24", "fd77:6c72::1/64"}},
				{"far", "eth0", []string{"10.77.0.2/24", "fd77:6c72::2/64"}},
			}}},
		}, nil
	case Router:
		return plan{
			hosts: []hostPlan{
				{name: "near", address: "10.77.1.1", routes: []routePlan{{"10.77.2.0/24", "10.77.1.254"}, {"fd77:6c72:0:2::/64", "fd77:6c72:0:1::fe"}}},
				{name: "router", address: "10.77.1.254", forward: true},
				{name: "far", address: "10.77.2.2", routes: []routePlan{{"10.77.1.0/24", "10.77.2.254"}, {"fd77:6c72:0:1::/64", "fd77:6c72:0:2::fe"}}},
			},
			hops: []hop{
				{ends: [2]end{
					{"near", "eth0", []string{"10.77.1.1/24", "fd77:6c72:0:1::1/64"}},
					{"router", "eth0", []string{"10.77.1.254/24", "fd77:6c72:0:1::fe/64"}},
				}},
				{link: true, ends: [2]end{
					{"router", "eth1", []string{"10.77.2.254/24", "fd77:6c72:0:2::fe/64"}},
					{"far", "eth0", []string{"10.77.2.2/24", "fd77:6c72:0:2::2/64"}},
				}},
			},
		}, nil
	}
	return plan{}, fmt.Errorf("world %q: want %s or %s", w.Topology, Pair, Router)
}

// port is where far serves; nothing else listens in a world.
const port = "7070"

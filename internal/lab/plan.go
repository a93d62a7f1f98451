package lab

import (
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// ErrNotSupported reports that the operating system has no namespaces.
var ErrNotSupported = errors.New("practice worlds need Linux namespaces")

// ErrNoNamespaces reports that the kernel or the container forbids namespaces; the error that wraps
// it names the remedy.
var ErrNoNamespaces = errors.New("namespaces are not permitted here")

// plan is a topology with its addresses. They are private and the same in every world, because
// worlds do not see each other.
type plan struct {
	hosts []hostPlan
	hops  []hop
}

type hostPlan struct {
	name    string
	address string // the IPv4 address by which other hosts know it
	forward bool
	routes  []routePlan
}

type routePlan struct{ destination, gateway string }

// hop joins two hosts. link marks the hop that has the world's link.
type hop struct {
	ends [2]end
	link bool
}

type end struct {
	host, device string
	addresses    []string // CIDR
}

// planOf returns the hosts and hops of a world.
func planOf(w scenario.World) (plan, error) {
	switch w.Topology {
	case scenario.Pair:
		return plan{
			hosts: []hostPlan{{name: "near", address: "10.77.0.1"}, {name: "far", address: "10.77.0.2"}},
			hops: []hop{{link: true, ends: [2]end{
				{"near", "eth0", []string{"10.77.0.1/24", "fd77:6c72::1/64"}},
				{"far", "eth0", []string{"10.77.0.2/24", "fd77:6c72::2/64"}},
			}}},
		}, nil
	case scenario.Router:
		return plan{
			hosts: []hostPlan{
				{name: "near", address: "10.77.1.1",
					routes: []routePlan{{"10.77.2.0/24", "10.77.1.254"}, {"fd77:6c72:0:2::/64", "fd77:6c72:0:1::fe"}}},
				{name: "router", address: "10.77.1.254", forward: true},
				{name: "far", address: "10.77.2.2",
					routes: []routePlan{{"10.77.1.0/24", "10.77.2.254"}, {"fd77:6c72:0:1::/64", "fd77:6c72:0:2::fe"}}},
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
	return plan{}, fmt.Errorf("world %q: want %s or %s", w.Topology, scenario.Pair, scenario.Router)
}

// port is the port of the server at far; no other program listens there.
const port = "7070"

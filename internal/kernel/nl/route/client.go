package route

import "github.com/linerate/linerate/internal/kernel/nl"

// Client reads and changes routes over the sockets of a client of package nl: in the network
// namespace of that one, from any thread, until that one is closed.
type Client struct{ k kernel }

// New takes a client of package nl, which stays the caller's to close.
func New(c *nl.Client) Client { return Client{kernel{c}} }

// kernel is the side that differs from one operating system to the other.
type kernel struct{ *nl.Client }

// List gives the unicast routes of the main table, IPv4 first, in the kernel's order.
func (c Client) List() ([]Route, error) {
	v, err := c.k.list()
	return v, nl.Wrap("list routes", "", err)
}

// Get gives the route of the main table to a destination, "default" or a prefix: of several the one
// in use. It asks for this one and reads the whole table only when longer prefixes or rules hide
// it. A missing route is fs.ErrNotExist.
func (c Client) Get(destination string) (Route, error) {
	v, err := c.k.get(destination)
	return v, nl.Wrap("read route", destination, err)
}

// To asks which route the kernel takes to an address. Destination is the prefix that matched and
// the metrics are those of that entry (Linux 4.13; before that the answer holds the address
// itself); Source is the address that would be used. An unreachable address is an error with
// ENETUNREACH.
func (c Client) To(ip string) (Route, error) {
	v, err := c.k.to(ip)
	return v, nl.Wrap("find route to", ip, err)
}

// Replace makes the route to r.Destination with r.Priority what r says: next hop, interface, source
// when given, and all metrics that Route has (zero: not set). Everything else that the kernel holds
// for an existing route (protocol, scope, lock bits, other metrics, several next hops,
// encapsulation) stays as it was. A route that does not exist is made.
func (c Client) Replace(r Route) error {
	return nl.Wrap("replace route", r.Destination, c.k.replace(r))
}

// SetMetric sets one metric of the route to a destination, 0 to clear it, and keeps all else of
// that route. Of several routes to the destination it changes the one with the lowest priority
// value, which is the one in use. A missing route is fs.ErrNotExist.
func (c Client) SetMetric(destination string, m Metric, value int) error {
	return nl.Wrap("set "+string(m)+" of route", destination, c.k.setMetric(destination, m, value))
}

// SetCongestion gives new connections over a route an algorithm of their own; an empty text takes
// it away. See SetMetric for which route is meant. One that the kernel neither has nor can load is
// EINVAL.
func (c Client) SetCongestion(destination, algorithm string) error {
	return nl.Wrap("set congctl of route", destination, c.k.setCongestion(destination, algorithm))
}

// Add makes a new route in the main table; an existing one is an error (fs.ErrExist).
func (c Client) Add(r Route) error { return nl.Wrap("add route", r.Destination, c.k.add(r)) }

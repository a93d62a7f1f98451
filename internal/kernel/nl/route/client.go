package route

import "github.com/linerate/linerate/internal/kernel/nl"

// Client reads and changes routes over the sockets of a client of package nl. It works in that
// client's network namespace, from any thread, until that client is closed.
type Client struct{ k kernel }

// New returns a Client that uses c. Closing c remains the caller's task.
func New(c *nl.Client) Client { return Client{kernel{c}} }

// kernel is the part that differs between operating systems.
type kernel struct{ *nl.Client }

// List returns the unicast routes of the main table, IPv4 first, in the kernel's order.
func (c Client) List() ([]Route, error) {
	v, err := c.k.list()
	return v, nl.Wrap("list routes", "", err)
}

// Get returns the main table's route to a destination, "default" or a prefix. If several exist, it
// returns the one in use. It queries the kernel for this route and reads the whole table only if
// longer prefixes or rules hide it. For a missing route the error is fs.ErrNotExist.
func (c Client) Get(destination string) (Route, error) {
	v, err := c.k.get(destination)
	return v, nl.Wrap("read route", destination, err)
}

// To returns the route that the kernel uses for an address. Destination is the prefix that matched,
// and the metrics are those of that entry (Linux 4.13; on older kernels the result holds the
// address itself). Source is the address that the kernel would use. For an unreachable address the
// error is ENETUNREACH.
func (c Client) To(ip string) (Route, error) {
	v, err := c.k.to(ip)
	return v, nl.Wrap("find route to", ip, err)
}

// Replace sets the route to r.Destination with r.Priority to the content of r: next hop, interface,
// source if given, and all metrics that Route has (zero: not set). All other properties of an
// existing route (protocol, scope, lock bits, other metrics, several next hops, encapsulation)
// remain. Replace creates a route that does not exist.
func (c Client) Replace(r Route) error {
	return nl.Wrap("replace route", r.Destination, c.k.replace(r))
}

// SetMetric sets one metric of the route to a destination, or clears it with 0, and leaves the rest
// of the route unchanged. If several routes lead to the destination, it changes the one in use,
// which has the lowest priority value. For a missing route the error is fs.ErrNotExist.
func (c Client) SetMetric(destination string, m Metric, value int) error {
	return nl.Wrap("set "+string(m)+" of route", destination, c.k.setMetric(destination, m, value))
}

// SetCongestion sets the congestion control algorithm of new connections over a route; an empty
// text removes it. SetMetric explains the choice among several routes. The error is EINVAL for an
// algorithm that the kernel neither has nor can load.
func (c Client) SetCongestion(destination, algorithm string) error {
	return nl.Wrap("set congctl of route", destination, c.k.setCongestion(destination, algorithm))
}

// Add creates a route in the main table. The error is fs.ErrExist if it exists.
func (c Client) Add(r Route) error { return nl.Wrap("add route", r.Destination, c.k.add(r)) }

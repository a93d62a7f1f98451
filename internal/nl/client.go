package nl

import "io"

// Client talks to the kernel in the network namespace of the thread that dialled it; it keeps working there
// from any other thread. It is safe for concurrent use; requests of one family are answered one after the
// other.
type Client struct{ k *kernel }

// Dial opens the sockets in the network namespace of the calling thread. Callers in a namespace of their
// own must have locked their OS thread. The error is ErrNotSupported on every OS but Linux.
func Dial() (*Client, error) {
	k, err := dial()
	if err != nil {
		return nil, wrap("open netlink", "", err)
	}
	return &Client{k: k}, nil
}

// Close releases the sockets. Calls after it fail.
//
// Requests under way in other goroutines end with an error.
func (c *Client) Close() error { return wrap("close netlink", "", c.k.close()) }

var _ io.Closer = (*Client)(nil)

// Links lists all interfaces of the namespace in the order of their index.
func (c *Client) Links() ([]Link, error) {
	v, err := c.k.links()
	return v, wrap("list links", "", err)
}

// LinkByName reads one interface. A missing one is fs.ErrNotExist.
func (c *Client) LinkByName(name string) (Link, error) {
	v, err := c.k.linkByName(name)
	return v, wrap("read link", name, err)
}

// Addresses lists the IPv4 and IPv6 addresses of all interfaces.
func (c *Client) Addresses() ([]Address, error) {
	v, err := c.k.addresses()
	return v, wrap("list addresses", "", err)
}

// Routes lists the unicast routes of the main table, IPv4 first, in the kernel's order.
func (c *Client) Routes() ([]Route, error) {
	v, err := c.k.routes()
	return v, wrap("list routes", "", err)
}

// Route gives the route of the main table to a destination, "default" or a prefix: of several the one in
// use. It asks for this one and reads the whole table only when longer prefixes or rules hide it. A missing
// route is fs.ErrNotExist.
func (c *Client) Route(destination string) (Route, error) {
	v, err := c.k.routeOf(destination)
	return v, wrap("read route", destination, err)
}

// RouteTo asks which route the kernel takes to an address. Destination is the prefix that matched and the
// metrics are those of that entry (Linux 4.13; before that the answer holds the address itself); Source is
// the address that would be used. An unreachable address is an error with ENETUNREACH.
func (c *Client) RouteTo(ip string) (Route, error) {
	v, err := c.k.routeTo(ip)
	return v, wrap("find route to", ip, err)
}

// Qdiscs lists the queueing disciplines of all interfaces with their totals; the built-in noqueue is not listed.
//
// A host whose default is noqueue (veth, bridge, VLAN) therefore shows fewer lines than it has links.
func (c *Client) Qdiscs() ([]Qdisc, error) {
	v, err := c.k.qdiscs()
	return v, wrap("list qdiscs", "", err)
}

// Rings reads the descriptor rings. Virtual devices answer ErrNotSupported.
func (c *Client) Rings(name string) (rx, tx Ring, err error) {
	rx, tx, err = c.k.rings(name)
	return rx, tx, wrap("read rings", name, err)
}

// Coalesce reads the interrupt moderation parameters that the driver supports, named as ethtool(8) -C takes
// them: rx-usecs, rx-frames, adaptive-rx, …. Switches are 0 or 1.
func (c *Client) Coalesce(name string) (map[string]uint32, error) {
	v, err := c.k.coalesce(name)
	return v, wrap("read coalescing", name, err)
}

// Features reads the offloads by the kernel's names (tx-tcp-segmentation, rx-gro, …).
func (c *Client) Features(name string) (map[string]Feature, error) {
	v, err := c.k.features(name)
	return v, wrap("read features", name, err)
}

// Channels reads the queue counts.
func (c *Client) Channels(name string) (Channels, error) {
	v, err := c.k.channels(name)
	return v, wrap("read channels", name, err)
}

// LinkMode reads the negotiated speed in bits per second (0: unknown or no link) and the duplex (full, half
// or empty for unknown). For a veth the speed is a constant of the driver, not a measurement.
func (c *Client) LinkMode(name string) (speedBitsPerSecond float64, duplex string, err error) {
	speedBitsPerSecond, duplex, err = c.k.linkMode(name)
	return speedBitsPerSecond, duplex, wrap("read link mode", name, err)
}

// LinkInfo reads port and transceiver kind.
func (c *Client) LinkInfo(name string) (LinkInfo, error) {
	v, err := c.k.linkInfo(name)
	return v, wrap("read link information", name, err)
}

// Pause reads the flow control settings. Devices without them, nearly all virtual ones, answer ErrNotSupported.
func (c *Client) Pause(name string) (Pause, error) {
	v, err := c.k.pause(name)
	return v, wrap("read pause of", name, err)
}

// EEE reads Energy-Efficient Ethernet. Links that know none answer ErrNotSupported.
func (c *Client) EEE(name string) (EEE, error) {
	v, err := c.k.eee(name)
	return v, wrap("read eee of", name, err)
}

// FEC reads the forward error correction (Linux 5.13). Links below 10 Gb/s answer ErrNotSupported.
func (c *Client) FEC(name string) (FEC, error) {
	v, err := c.k.fec(name)
	return v, wrap("read fec of", name, err)
}

// RSS reads hash function, length of the key and indirection table of receive side scaling. Devices that spread nothing
// answer ErrNotSupported, or with some drivers a function without key and table.
func (c *Client) RSS(name string) (RSS, error) {
	v, err := c.k.rss(name)
	return v, wrap("read rss of", name, err)
}

// PrivateFlags reads the switches that only this driver has, by the driver's names. Drivers without answer
// ErrNotSupported.
func (c *Client) PrivateFlags(name string) (map[string]bool, error) {
	v, err := c.k.privateFlags(name)
	return v, wrap("read private flags of", name, err)
}

// Driver names driver, firmware and bus address.
func (c *Client) Driver(name string) (DriverInfo, error) {
	v, err := c.k.driver(name)
	return v, wrap("read driver", name, err)
}

// Statistics reads the driver's own counters by name (ethtool -S). Names repeat in some drivers; the last
// one then wins.
func (c *Client) Statistics(name string) (map[string]uint64, error) {
	v, err := c.k.statistics(name)
	return v, wrap("read statistics", name, err)
}

// SetMTU sets the MTU in bytes.
//
// A value outside of the driver's limits is EINVAL with the kernel's sentence. On most drivers a running card is
// re-initialised by it and loses packets for a moment; see the disturbance class in the catalogue of package knob.
func (c *Client) SetMTU(name string, bytes int) error {
	return wrap("set mtu of", name, c.k.setMTU(name, bytes))
}

// SetTxQueueLen sets the length of the transmit queue in packets.
func (c *Client) SetTxQueueLen(name string, packets int) error {
	return wrap("set txqueuelen of", name, c.k.setTxQueueLen(name, packets))
}

// SetSizeLimit sets one of the limits on merged and split packets in bytes, and reads it back. More than
// 65536 ("BIG TCP") is for IPv6 since Linux 5.19 and for IPv4 since 6.3, and for GSO as far as the driver
// goes; programs that read raw packets may not be ready for them. A kernel without the limit is
// ErrNotSupported, one that the driver cannot is EINVAL.
func (c *Client) SetSizeLimit(name string, which SizeLimit, bytes int) error {
	return wrap("set "+string(which)+" of", name, c.k.setSizeLimit(name, which, bytes))
}

// SetUp brings a link up.
func (c *Client) SetUp(name string) error { return wrap("set up", name, c.k.setUp(name, true)) }

// SetDown takes a link down. Its IPv6 addresses and its routes are gone afterwards.
func (c *Client) SetDown(name string) error { return wrap("set down", name, c.k.setUp(name, false)) }

// SetMAC sets the hardware address, in the usual form with colons.
func (c *Client) SetMAC(name, mac string) error {
	return wrap("set mac of", name, c.k.setMAC(name, mac))
}

// SetFeature switches one offload by the kernel's name and reads it back: a change that the kernel took and
// did not make is ErrNotApplied, one that the driver fixes ErrNotSupported, an unknown name fs.ErrNotExist.
func (c *Client) SetFeature(name, feature string, on bool) error {
	return wrap("set feature "+feature+" of", name, c.k.setFeature(name, feature, on))
}

// SetRing sets the number of descriptors of one direction, "rx" or "tx", or one of the RingParameters.
//
// Like SetChannel, SetCoalesce and SetPause it reads back: it is nil when the driver rounded the number,
// and callers who need to know what holds now read it; it is ErrNotApplied when another value was asked for
// and nothing changed. A value that is set already is not sent, since drivers stop the card for every
// change. Somebody else who sets the number back at the same moment makes it look as if nothing had
// changed. A number above the driver's maximum is EINVAL with the kernel's sentence.
func (c *Client) SetRing(name, direction string, descriptors uint32) error {
	return wrap("set "+direction+" ring of", name, c.k.setRing(name, direction, descriptors))
}

// SetChannel sets a queue count: kind is "combined", "rx" or "tx". See SetRing for what is read back.
func (c *Client) SetChannel(name, kind string, n uint32) error {
	return wrap("set "+kind+" channels of", name, c.k.setChannel(name, kind, n))
}

// SetCoalesce sets one interrupt moderation parameter by the key that Coalesce gives it. A key that no
// kernel has is fs.ErrNotExist, one that the driver has not ErrNotSupported. See SetRing for what is read
// back.
func (c *Client) SetCoalesce(name, key string, v uint32) error {
	return wrap("set coalescing "+key+" of", name, c.k.setCoalesce(name, key, v))
}

// SetPause sets the flow control. A link that negotiates is renegotiated by it and down for seconds on many cards.
// See SetRing for what is read back.
func (c *Client) SetPause(name string, p Pause) error {
	return wrap("set pause of", name, c.k.setPause(name, p))
}

// SetEEE switches Energy-Efficient Ethernet on or off and reads it back. The link is renegotiated and down
// for seconds on most cards.
func (c *Client) SetEEE(name string, on bool) error {
	return wrap("set eee of", name, c.k.setEEE(name, on))
}

// SetPrivateFlag switches one of the driver's own flags and reads it back. An unknown flag is fs.ErrNotExist.
func (c *Client) SetPrivateFlag(name, flag string, on bool) error {
	return wrap("set private flag "+flag+" of", name, c.k.setPrivateFlag(name, flag, on))
}

// ReplaceRoute makes the route to r.Destination with r.Priority what r says: next hop, interface, source
// when given, and all metrics that Route has (zero: not set). Everything else that the kernel holds for an
// existing route (protocol, scope, lock bits, other metrics, several next hops, encapsulation) stays as it
// was. A route that does not exist is made.
func (c *Client) ReplaceRoute(r Route) error {
	return wrap("replace route", r.Destination, c.k.replaceRoute(r))
}

// SetRouteMetric sets one metric of the route to a destination, 0 to clear it, and keeps all else of that
// route. Of several routes to the destination it changes the one with the lowest priority value, which is
// the one in use. A missing route is fs.ErrNotExist.
func (c *Client) SetRouteMetric(destination string, m RouteMetric, value int) error {
	return wrap("set "+string(m)+" of route", destination, c.k.setRouteMetric(destination, m, value))
}

// SetRouteCongestion gives new connections over a route an algorithm of their own; an empty text takes it
// away. See SetRouteMetric for which route is meant. One that the kernel neither has nor can load is
// EINVAL.
func (c *Client) SetRouteCongestion(destination, algorithm string) error {
	return wrap("set congctl of route", destination, c.k.setRouteCongestion(destination, algorithm))
}

// AddRoute makes a new route in the main table; an existing one is an error (fs.ErrExist).
func (c *Client) AddRoute(r Route) error { return wrap("add route", r.Destination, c.k.addRoute(r)) }

// AddAddress gives a link an address in CIDR form. IPv6 addresses skip duplicate address detection, so that
// they can be used at once.
func (c *Client) AddAddress(name, cidr string) error {
	return wrap("add address "+cidr+" to", name, c.k.addAddress(name, cidr))
}

// AddVeth makes a pair of virtual Ethernet devices: a here and b in the network namespace that the
// descriptor bNetNSFd refers to, or here as well when it is -1. Both are down.
func (c *Client) AddVeth(a, b string, bNetNSFd int) error {
	return wrap("add veth", a+" "+b, c.k.addVeth(a, b, bNetNSFd))
}

// AddLink makes a virtual link that needs no parameters: dummy, bridge, ifb.
func (c *Client) AddLink(name, kind string) error {
	return wrap("add "+kind, name, c.k.addLink(name, kind))
}

// MoveToNetNS moves a link to another network namespace, where it arrives down and without addresses.
//
// Physical cards go back to the first namespace when theirs ends, virtual ones are deleted with it.
func (c *Client) MoveToNetNS(name string, fd int) error {
	return wrap("move to namespace", name, c.k.moveToNetNS(name, fd))
}

// SetMaster makes a link a port of a bridge or bond; an empty master takes it out.
func (c *Client) SetMaster(name, master string) error {
	return wrap("set master of", name, c.k.setMaster(name, master))
}

// DeleteLink removes a virtual link; of a veth both ends go.
func (c *Client) DeleteLink(name string) error {
	return wrap("delete link", name, c.k.deleteLink(name))
}

// TBF describes a token bucket filter (tc-tbf(8)).
//
// The burst must hold what may be sent between two ticks of the timer that refills the bucket, and at least one
// packet with its header.
type TBF struct {
	RateBitsPerSecond float64
	BurstBytes        int // at least rate ÷ HZ ÷ 8, or the rate is not reached
	LimitBytes        int // queue in front of the bucket
}

// ReplaceTBF makes a token bucket filter the root qdisc of a link.
//
// Package lab uses it; as a knob it would be a limit and not a remedy.
func (c *Client) ReplaceTBF(name string, t TBF) error {
	return wrap("replace root qdisc of", name, c.k.replaceTBF(name, t))
}

// ReplaceQdisc makes a qdisc with its default parameters the root of a link: fq, fq_codel, pfifo_fast, noqueue, ….
func (c *Client) ReplaceQdisc(name, kind string) error {
	return wrap("replace root qdisc of", name, c.k.replaceQdisc(name, kind))
}

// QdiscTree lists the queueing disciplines of one link with their options, the root first. A link without
// any (noqueue) has an empty list.
func (c *Client) QdiscTree(name string) ([]QdiscNode, error) {
	v, err := c.k.qdiscTree(name)
	return v, wrap("read qdiscs of", name, err)
}

// ChangeQdisc changes parameters of a discipline that stands: n has its kind, handle and parent, and only
// the options that change. Its queue stays. A handle of 0, which is that of a discipline nobody has made,
// is refused by the kernel.
func (c *Client) ChangeQdisc(name string, n QdiscNode) error {
	return wrap("change qdisc of", name, c.k.changeQdisc(name, n))
}

// PutQdisc makes a new discipline in a place, whatever stood there: packets that wait in the old one are
// lost. The handle must be one that is not in use. With a handle of 0 the kernel gives one, and changes a
// discipline of the same kind instead of making one.
func (c *Client) PutQdisc(name string, n QdiscNode) error {
	return wrap("replace qdisc of", name, c.k.newQdisc(name, n))
}

// DeleteRootQdisc takes away what stands at the root, and the kernel gives the link what it would have had
// at the start.
func (c *Client) DeleteRootQdisc(name string) error {
	return wrap("delete qdisc of", name, c.k.deleteRootQdisc(name))
}

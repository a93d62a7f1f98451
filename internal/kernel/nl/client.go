package nl

import "io"

// Client talks to the kernel in the network namespace of the thread that dialled it; it keeps
// working there from any other thread. It is safe for concurrent use; requests of one family are
// answered one after the other.
type Client struct{ k *kernel }

// Dial opens the sockets in the network namespace of the calling thread. Callers in a namespace of
// their own must have locked their OS thread. The error is ErrNotSupported on every OS but Linux.
func Dial() (*Client, error) {
	k, err := dial()
	if err != nil {
		return nil, Wrap("open netlink", "", err)
	}
	return &Client{k: k}, nil
}

// Close releases the sockets. Calls after it fail.
//
// Requests under way in other goroutines end with an error.
func (c *Client) Close() error { return Wrap("close netlink", "", c.k.close()) }

var _ io.Closer = (*Client)(nil)

// Links lists all interfaces of the namespace in the order of their index.
func (c *Client) Links() ([]Link, error) {
	v, err := c.k.links()
	return v, Wrap("list links", "", err)
}

// LinkByName reads one interface. A missing one is fs.ErrNotExist.
func (c *Client) LinkByName(name string) (Link, error) {
	v, err := c.k.linkByName(name)
	return v, Wrap("read link", name, err)
}

// Addresses lists the IPv4 and IPv6 addresses of all interfaces.
func (c *Client) Addresses() ([]Address, error) {
	v, err := c.k.addresses()
	return v, Wrap("list addresses", "", err)
}

// Qdiscs lists the queueing disciplines of all interfaces with their totals; the built-in noqueue
// is not listed.
//
// A host whose default is noqueue (veth, bridge, VLAN) therefore shows fewer lines than it has
// links.
func (c *Client) Qdiscs() ([]Qdisc, error) {
	v, err := c.k.qdiscs()
	return v, Wrap("list qdiscs", "", err)
}

// SetMTU sets the MTU in bytes.
//
// A value outside of the driver's limits is EINVAL with the kernel's sentence. On most drivers a
// running card is re-initialised by it and loses packets for a moment; see the disturbance class in
// the catalogue of package knob.
func (c *Client) SetMTU(name string, bytes int) error {
	return Wrap("set mtu of", name, c.k.setMTU(name, bytes))
}

// SetTxQueueLen sets the length of the transmit queue in packets.
func (c *Client) SetTxQueueLen(name string, packets int) error {
	return Wrap("set txqueuelen of", name, c.k.setTxQueueLen(name, packets))
}

// SetSizeLimit sets one of the limits on merged and split packets in bytes, and reads it back. More
// than 65536 ("BIG TCP") is for IPv6 since Linux 5.19 and for IPv4 since 6.3, and for GSO as far as
// the driver goes; programs that read raw packets may not be ready for them. A kernel without the
// limit is ErrNotSupported, one that the driver cannot is EINVAL.
func (c *Client) SetSizeLimit(name string, which SizeLimit, bytes int) error {
	return Wrap("set "+string(which)+" of", name, c.k.setSizeLimit(name, which, bytes))
}

// SetUp brings a link up.
func (c *Client) SetUp(name string) error { return Wrap("set up", name, c.k.setUp(name, true)) }

// SetDown takes a link down. Its IPv6 addresses and its routes are gone afterwards.
func (c *Client) SetDown(name string) error { return Wrap("set down", name, c.k.setUp(name, false)) }

// SetMAC sets the hardware address, in the usual form with colons.
func (c *Client) SetMAC(name, mac string) error {
	return Wrap("set mac of", name, c.k.setMAC(name, mac))
}

// AddAddress gives a link an address in CIDR form. IPv6 addresses skip duplicate address detection,
// so that they can be used at once.
func (c *Client) AddAddress(name, cidr string) error {
	return Wrap("add address "+cidr+" to", name, c.k.addAddress(name, cidr))
}

// AddVeth makes a pair of virtual Ethernet devices: a here and b in the network namespace that the
// descriptor bNetNSFd refers to, or here as well when it is -1. Both are down.
func (c *Client) AddVeth(a, b string, bNetNSFd int) error {
	return Wrap("add veth", a+" "+b, c.k.addVeth(a, b, bNetNSFd))
}

// AddLink makes a virtual link that needs no parameters: dummy, bridge, ifb.
func (c *Client) AddLink(name, kind string) error {
	return Wrap("add "+kind, name, c.k.addLink(name, kind))
}

// MoveToNetNS moves a link to another network namespace, where it arrives down and without
// addresses.
//
// Physical cards go back to the first namespace when theirs ends, virtual ones are deleted with it.
func (c *Client) MoveToNetNS(name string, fd int) error {
	return Wrap("move to namespace", name, c.k.moveToNetNS(name, fd))
}

// SetMaster makes a link a port of a bridge or bond; an empty master takes it out.
func (c *Client) SetMaster(name, master string) error {
	return Wrap("set master of", name, c.k.setMaster(name, master))
}

// DeleteLink removes a virtual link; of a veth both ends go.
func (c *Client) DeleteLink(name string) error {
	return Wrap("delete link", name, c.k.deleteLink(name))
}

// TBF describes a token bucket filter (tc-tbf(8)).
//
// The burst must hold what may be sent between two ticks of the timer that refills the bucket, and
// at least one packet with its header.
type TBF struct {
	RateBitsPerSecond float64
	BurstBytes        int // at least rate ÷ HZ ÷ 8, or the rate is not reached
	LimitBytes        int // queue in front of the bucket
}

// ReplaceTBF makes a token bucket filter the root qdisc of a link.
//
// Package lab uses it; as a knob it would be a limit and not a remedy.
func (c *Client) ReplaceTBF(name string, t TBF) error {
	return Wrap("replace root qdisc of", name, c.k.replaceTBF(name, t))
}

// ReplaceQdisc makes a qdisc with its default parameters the root of a link: fq, fq_codel,
// pfifo_fast, noqueue, ….
func (c *Client) ReplaceQdisc(name, kind string) error {
	return Wrap("replace root qdisc of", name, c.k.replaceQdisc(name, kind))
}

// QdiscTree lists the queueing disciplines of one link with their options, the root first. A link
// without any (noqueue) has an empty list.
func (c *Client) QdiscTree(name string) ([]QdiscNode, error) {
	v, err := c.k.qdiscTree(name)
	return v, Wrap("read qdiscs of", name, err)
}

// ChangeQdisc changes parameters of a discipline that stands: n has its kind, handle and parent,
// and only the options that change. Its queue stays. A handle of 0, which is that of a discipline
// nobody has made, is refused by the kernel.
func (c *Client) ChangeQdisc(name string, n QdiscNode) error {
	return Wrap("change qdisc of", name, c.k.changeQdisc(name, n))
}

// PutQdisc makes a new discipline in a place, whatever stood there: packets that wait in the old
// one are lost. The handle must be one that is not in use. With a handle of 0 the kernel gives one,
// and changes a discipline of the same kind instead of making one.
func (c *Client) PutQdisc(name string, n QdiscNode) error {
	return Wrap("replace qdisc of", name, c.k.newQdisc(name, n))
}

// DeleteRootQdisc takes away what stands at the root, and the kernel gives the link what it would
// have had at the start.
func (c *Client) DeleteRootQdisc(name string) error {
	return Wrap("delete qdisc of", name, c.k.deleteRootQdisc(name))
}

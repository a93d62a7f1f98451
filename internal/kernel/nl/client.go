package nl

import "io"

// Client exchanges netlink messages with the kernel. It belongs to the network namespace of the
// thread that dialled it, and works there from any other thread. It is safe for concurrent use;
// requests of one family run one after another.
type Client struct{ k *kernel }

// Dial opens the sockets in the network namespace of the calling thread. A caller that has entered
// another namespace must have locked its OS thread. The error is ErrNotSupported on every OS except
// Linux.
func Dial() (*Client, error) {
	k, err := dial()
	if err != nil {
		return nil, Wrap("open netlink", "", err)
	}
	return &Client{k: k}, nil
}

// Close closes the sockets. Later calls fail, and requests that are under way in other goroutines
// end with an error.
func (c *Client) Close() error { return Wrap("close netlink", "", c.k.close()) }

var _ io.Closer = (*Client)(nil)

// Links returns all interfaces of the namespace, ordered by index.
func (c *Client) Links() ([]Link, error) {
	v, err := c.k.links()
	return v, Wrap("list links", "", err)
}

// OwnName returns the name of the interface that has the given name, as its own or as one of its
// alternative ones (ip link property, Linux 5.5). Those may be longer than 15 bytes.
func (c *Client) OwnName(name string) (string, error) {
	v, err := c.k.ownName(name)
	return v, Wrap("read link", name, err)
}

// LinkByName returns one interface. The error for a missing interface is fs.ErrNotExist. The kernel
// also finds an interface by an alternative name, so that the Name of the answer may be another.
func (c *Client) LinkByName(name string) (Link, error) {
	v, err := c.k.linkByName(name)
	return v, Wrap("read link", name, err)
}

// Addresses returns the IPv4 and IPv6 addresses of all interfaces.
func (c *Client) Addresses() ([]Address, error) {
	v, err := c.k.addresses()
	return v, Wrap("list addresses", "", err)
}

// Qdiscs returns the queueing disciplines of all interfaces with their totals. The built-in noqueue
// is not listed, so a host whose default is noqueue (veth, bridge, VLAN) shows fewer disciplines
// than links.
func (c *Client) Qdiscs() ([]Qdisc, error) {
	v, err := c.k.qdiscs()
	return v, Wrap("list qdiscs", "", err)
}

// SetMTU sets the MTU in bytes.
//
// The error for a value outside the driver's limits is EINVAL with the kernel's message. Most
// drivers re-initialise a running NIC for this change and lose packets for a moment; see the
// disturbance class in the catalogue of package knob.
func (c *Client) SetMTU(name string, bytes int) error {
	return Wrap("set mtu of", name, c.k.setMTU(name, bytes))
}

// SetTxQueueLen sets the length of the transmit queue in packets.
func (c *Client) SetTxQueueLen(name string, packets int) error {
	return Wrap("set txqueuelen of", name, c.k.setTxQueueLen(name, packets))
}

// SetSizeLimit sets one of the limits on merged and split packets, in bytes, and reads it back.
// More than 65536 ("BIG TCP") works for IPv6 since Linux 5.19 and for IPv4 since 6.3, and for GSO
// up to the driver's own limit; programs that read raw packets may not be ready for such packets.
// The error is ErrNotSupported if the kernel lacks the limit, and EINVAL if the driver refuses the
// value.
func (c *Client) SetSizeLimit(name string, which SizeLimit, bytes int) error {
	return Wrap("set "+string(which)+" of", name, c.k.setSizeLimit(name, which, bytes))
}

// SetUp brings a link up.
func (c *Client) SetUp(name string) error { return Wrap("set up", name, c.k.setUp(name, true)) }

// SetDown takes a link down. The kernel then deletes its IPv6 addresses and its routes.
func (c *Client) SetDown(name string) error { return Wrap("set down", name, c.k.setUp(name, false)) }

// SetMAC sets the hardware address, written in the usual form with colons.
func (c *Client) SetMAC(name, mac string) error {
	return Wrap("set mac of", name, c.k.setMAC(name, mac))
}

// AddAddress adds an address in CIDR form to a link. IPv6 addresses skip duplicate address
// detection, so that they are usable at once.
func (c *Client) AddAddress(name, cidr string) error {
	return Wrap("add address "+cidr+" to", name, c.k.addAddress(name, cidr))
}

// AddVeth creates a pair of virtual Ethernet devices. End a is in the client's namespace. End b is
// in the namespace that the descriptor bNetNSFd refers to, or in the client's if bNetNSFd is -1.
// Both ends are down.
func (c *Client) AddVeth(a, b string, bNetNSFd int) error {
	return Wrap("add veth", a+" "+b, c.k.addVeth(a, b, bNetNSFd))
}

// AddLink creates a virtual link that needs no parameters: dummy, bridge, ifb.
func (c *Client) AddLink(name, kind string) error {
	return Wrap("add "+kind, name, c.k.addLink(name, kind))
}

// MoveToNetNS moves a link to another network namespace, where it arrives down and without
// addresses.
//
// When that namespace ends, the kernel returns physical NICs to the initial namespace and deletes
// virtual links.
func (c *Client) MoveToNetNS(name string, fd int) error {
	return Wrap("move to namespace", name, c.k.moveToNetNS(name, fd))
}

// SetMaster makes a link a port of a bridge or bond. An empty master detaches it.
func (c *Client) SetMaster(name, master string) error {
	return Wrap("set master of", name, c.k.setMaster(name, master))
}

// DeleteLink removes a virtual link. For a veth the kernel removes both ends.
func (c *Client) DeleteLink(name string) error {
	return Wrap("delete link", name, c.k.deleteLink(name))
}

// TBF describes a token bucket filter (tc-tbf(8)).
//
// The burst must hold the bytes that may be sent between two ticks of the timer that refills the
// bucket, and at least one packet with its header.
type TBF struct {
	RateBitsPerSecond float64
	BurstBytes        int // at least rate ÷ HZ ÷ 8, otherwise the rate is not reached
	LimitBytes        int // queue in front of the bucket
}

// ReplaceTBF makes a token bucket filter the root qdisc of a link.
//
// Package lab uses it. It is not a knob, because it would limit a path instead of improving it.
func (c *Client) ReplaceTBF(name string, t TBF) error {
	return Wrap("replace root qdisc of", name, c.k.replaceTBF(name, t))
}

// ReplaceQdisc makes a qdisc with default parameters the root of a link: fq, fq_codel, pfifo_fast,
// noqueue, ….
func (c *Client) ReplaceQdisc(name, kind string) error {
	return Wrap("replace root qdisc of", name, c.k.replaceQdisc(name, kind))
}

// QdiscTree returns the queueing disciplines of one link with their options, the root first. The
// list is empty for a link without a discipline (noqueue).
func (c *Client) QdiscTree(name string) ([]QdiscNode, error) {
	v, err := c.k.qdiscTree(name)
	return v, Wrap("read qdiscs of", name, err)
}

// ChangeQdisc changes parameters of an existing discipline and keeps its queue. n has the kind,
// handle and parent of the discipline, and only the options that change. The kernel refuses handle
// 0, which belongs to its default discipline.
func (c *Client) ChangeQdisc(name string, n QdiscNode) error {
	return Wrap("change qdisc of", name, c.k.changeQdisc(name, n))
}

// PutQdisc installs a new discipline and replaces the one at that place; packets that wait in the
// old one are lost. The handle must not be in use. With handle 0 the kernel chooses a handle, and
// changes an existing discipline of the same kind instead of creating one.
func (c *Client) PutQdisc(name string, n QdiscNode) error {
	return Wrap("replace qdisc of", name, c.k.newQdisc(name, n))
}

// DeleteRootQdisc deletes the root discipline of a link, and the kernel installs its default there.
func (c *Client) DeleteRootQdisc(name string) error {
	return Wrap("delete qdisc of", name, c.k.deleteRootQdisc(name))
}

package ethtool

import "github.com/linerate/linerate/internal/kernel/nl"

// Client reads and changes the settings of NICs over the sockets of a client of package nl. It
// works in that client's network namespace, from any thread, until that client is closed.
type Client struct{ k kernel }

// New returns a Client that uses c. Closing c remains the caller's task.
func New(c *nl.Client) Client { return Client{kernel{Client: c}} }

// kernel is the part that differs between operating systems.
type kernel struct {
	*nl.Client
	testOnlyByIoctl bool // as on kernels before 5.6
}

// Rings reads the descriptor rings. For virtual devices the error is nl.ErrNotSupported.
func (c Client) Rings(name string) (rx, tx Ring, err error) {
	rx, tx, err = c.k.rings(name)
	return rx, tx, nl.Wrap("read rings", name, err)
}

// Coalesce reads the interrupt moderation parameters that the driver supports. Their names are
// those of ethtool(8) -C: rx-usecs, rx-frames, adaptive-rx, …. Switches are 0 or 1.
func (c Client) Coalesce(name string) (map[string]uint32, error) {
	v, err := c.k.coalesce(name)
	return v, nl.Wrap("read coalescing", name, err)
}

// Features reads the offloads under the kernel's names (tx-tcp-segmentation, rx-gro, …).
func (c Client) Features(name string) (map[string]Feature, error) {
	v, err := c.k.features(name)
	return v, nl.Wrap("read features", name, err)
}

// Channels reads the queue counts.
func (c Client) Channels(name string) (Channels, error) {
	v, err := c.k.channels(name)
	return v, nl.Wrap("read channels", name, err)
}

// LinkMode reads the negotiated speed in bits per second (0: unknown or no link) and the duplex
// (full, half, or empty for unknown). For a veth the speed is a constant of the driver, not a
// measurement.
func (c Client) LinkMode(name string) (speedBitsPerSecond float64, duplex string, err error) {
	speedBitsPerSecond, duplex, err = c.k.linkMode(name)
	return speedBitsPerSecond, duplex, nl.Wrap("read link mode", name, err)
}

// LinkInfo reads the kinds of port and transceiver.
func (c Client) LinkInfo(name string) (LinkInfo, error) {
	v, err := c.k.linkInfo(name)
	return v, nl.Wrap("read link information", name, err)
}

// Module reads length bytes of the memory of a pluggable module (Linux 5.13), at a seven-bit
// address of its two-wire bus. Offsets below 128 are in the lower half; above they are in the
// page. For devices without a module the error is nl.ErrNotSupported; ordinary users get
// fs.ErrPermission.
func (c Client) Module(name string, address, page byte, offset, length int) ([]byte, error) {
	b, err := c.k.module(name, address, page, offset, length)
	return b, nl.Wrap("read module of", name, err)
}

// Pause reads the flow control settings. For devices without them, which nearly all virtual ones
// are, the error is nl.ErrNotSupported.
func (c Client) Pause(name string) (Pause, error) {
	v, err := c.k.pause(name)
	return v, nl.Wrap("read pause of", name, err)
}

// EEE reads Energy-Efficient Ethernet. For links without it, the error is nl.ErrNotSupported.
func (c Client) EEE(name string) (EEE, error) {
	v, err := c.k.eee(name)
	return v, nl.Wrap("read eee of", name, err)
}

// FEC reads the forward error correction (Linux 5.13). For links below 10 Gb/s the error is
// nl.ErrNotSupported.
func (c Client) FEC(name string) (FEC, error) {
	v, err := c.k.fec(name)
	return v, nl.Wrap("read fec of", name, err)
}

// RSS reads the hash function, the key length and the indirection table of receive side scaling.
// For devices without it, the error is nl.ErrNotSupported; some of their drivers return a function
// without key and table instead.
func (c Client) RSS(name string) (RSS, error) {
	v, err := c.k.rss(name)
	return v, nl.Wrap("read rss of", name, err)
}

// PrivateFlags reads the driver-specific switches under the driver's names. For drivers without
// any, the error is nl.ErrNotSupported.
func (c Client) PrivateFlags(name string) (map[string]bool, error) {
	v, err := c.k.privateFlags(name)
	return v, nl.Wrap("read private flags of", name, err)
}

// Driver returns the driver, its firmware and the bus address.
func (c Client) Driver(name string) (DriverInfo, error) {
	v, err := c.k.driver(name)
	return v, nl.Wrap("read driver", name, err)
}

// Statistics reads the driver's own counters by name (ethtool -S). If a driver repeats a name, the
// last counter with that name is returned.
func (c Client) Statistics(name string) (map[string]uint64, error) {
	v, err := c.k.statistics(name)
	return v, nl.Wrap("read statistics", name, err)
}

// SetFeature switches one offload by the kernel's name and reads it back. The error is
// nl.ErrNotApplied if the kernel accepted the change without making it, nl.ErrNotSupported if the
// driver fixes the feature, and fs.ErrNotExist for an unknown name.
func (c Client) SetFeature(name, feature string, on bool) error {
	return nl.Wrap("set feature "+feature+" of", name, c.k.setFeature(name, feature, on))
}

// SetRing sets the number of descriptors of one direction, "rx" or "tx", or one of the
// RingParameters.
//
// Like SetChannel, SetCoalesce and SetPause it reads the value back. The result is nil if the
// driver rounded the number; a caller that needs the effective number reads it. The error is
// nl.ErrNotApplied if the value differed from the request and did not change. A value that is
// already set is not sent, because drivers stop the NIC for every change. If another program sets
// the old number at the same moment, the change looks as if it had no effect. For a number above
// the driver's maximum the error is EINVAL with the kernel's message.
func (c Client) SetRing(name, direction string, descriptors uint32) error {
	return nl.Wrap("set "+direction+" ring of", name, c.k.setRing(name, direction, descriptors))
}

// SetChannel sets a queue count. The kind is "combined", "rx" or "tx". See SetRing for the
// read-back.
func (c Client) SetChannel(name, kind string, n uint32) error {
	return nl.Wrap("set "+kind+" channels of", name, c.k.setChannel(name, kind, n))
}

// SetCoalesce sets one interrupt moderation parameter under the key that Coalesce uses. The error
// is fs.ErrNotExist for a key that no kernel has, and nl.ErrNotSupported for one that the driver
// lacks. See SetRing for the read-back.
func (c Client) SetCoalesce(name, key string, v uint32) error {
	return nl.Wrap("set coalescing "+key+" of", name, c.k.setCoalesce(name, key, v))
}

// SetPause sets the flow control. A link with autonegotiation negotiates again, and on many NICs is
// down for seconds. See SetRing for the read-back.
func (c Client) SetPause(name string, p Pause) error {
	return nl.Wrap("set pause of", name, c.k.setPause(name, p))
}

// SetEEE switches Energy-Efficient Ethernet on or off and reads it back. The link negotiates again,
// and on most NICs is down for seconds.
func (c Client) SetEEE(name string, on bool) error {
	return nl.Wrap("set eee of", name, c.k.setEEE(name, on))
}

// SetPrivateFlag switches one of the driver's own flags and reads it back. For an unknown flag the
// error is fs.ErrNotExist.
func (c Client) SetPrivateFlag(name, flag string, on bool) error {
	return nl.Wrap("set private flag "+flag+" of", name, c.k.setPrivateFlag(name, flag, on))
}

// Wake reads what wakes the host (ethtool -s wol). For devices that wake no host the error is
// nl.ErrNotSupported, or Supported is 0; ordinary users get fs.ErrPermission.
func (c Client) Wake(name string) (Wake, error) {
	w, err := c.k.wake(name)
	return w, nl.Wrap("read wake-on-lan of", name, err)
}

// SetWake sets what wakes the host, as bits of WAKE_…. With WakeMagicSecure the error is
// nl.ErrNotSupported.
func (c Client) SetWake(name string, on uint32) error {
	return nl.Wrap("set wake-on-lan of", name, c.k.setWake(name, on))
}

// MessageLevel reads the classes of messages that the driver writes to the kernel's log, as the
// bits of NETIF_MSG_… (linux/netdevice.h).
func (c Client) MessageLevel(name string) (uint32, error) {
	v, err := c.k.messageLevel(name)
	return v, nl.Wrap("read message level of", name, err)
}

// SetMessageLevel sets the classes of messages.
func (c Client) SetMessageLevel(name string, level uint32) error {
	return nl.Wrap("set message level of", name, c.k.setMessageLevel(name, level))
}

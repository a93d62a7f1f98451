package ethtool

import "github.com/linerate/linerate/internal/kernel/nl"

// Client asks about cards and changes them, over the sockets of a client of package nl: in the
// network namespace of that one, from any thread, until that one is closed.
type Client struct{ k kernel }

// New takes a client of package nl, which stays the caller's to close.
func New(c *nl.Client) Client { return Client{kernel{Client: c}} }

// kernel is the side that differs from one operating system to the other.
type kernel struct {
	*nl.Client
	testOnlyByIoctl bool // as on kernels before 5.6
}

// Rings reads the descriptor rings. Virtual devices answer nl.ErrNotSupported.
func (c Client) Rings(name string) (rx, tx Ring, err error) {
	rx, tx, err = c.k.rings(name)
	return rx, tx, nl.Wrap("read rings", name, err)
}

// Coalesce reads the interrupt moderation parameters that the driver supports, named as ethtool(8)
// -C takes them: rx-usecs, rx-frames, adaptive-rx, …. Switches are 0 or 1.
func (c Client) Coalesce(name string) (map[string]uint32, error) {
	v, err := c.k.coalesce(name)
	return v, nl.Wrap("read coalescing", name, err)
}

// Features reads the offloads by the kernel's names (tx-tcp-segmentation, rx-gro, …).
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
// (full, half or empty for unknown). For a veth the speed is a constant of the driver, not a
// measurement.
func (c Client) LinkMode(name string) (speedBitsPerSecond float64, duplex string, err error) {
	speedBitsPerSecond, duplex, err = c.k.linkMode(name)
	return speedBitsPerSecond, duplex, nl.Wrap("read link mode", name, err)
}

// LinkInfo reads port and transceiver kind.
func (c Client) LinkInfo(name string) (LinkInfo, error) {
	v, err := c.k.linkInfo(name)
	return v, nl.Wrap("read link information", name, err)
}

// Pause reads the flow control settings. Devices without them, nearly all virtual ones, answer
// nl.ErrNotSupported.
func (c Client) Pause(name string) (Pause, error) {
	v, err := c.k.pause(name)
	return v, nl.Wrap("read pause of", name, err)
}

// EEE reads Energy-Efficient Ethernet. Links that know none answer nl.ErrNotSupported.
func (c Client) EEE(name string) (EEE, error) {
	v, err := c.k.eee(name)
	return v, nl.Wrap("read eee of", name, err)
}

// FEC reads the forward error correction (Linux 5.13). Links below 10 Gb/s answer
// nl.ErrNotSupported.
func (c Client) FEC(name string) (FEC, error) {
	v, err := c.k.fec(name)
	return v, nl.Wrap("read fec of", name, err)
}

// RSS reads hash function, length of the key and indirection table of receive side scaling. Devices
// that spread nothing answer nl.ErrNotSupported, or with some drivers a function without key and
// table.
func (c Client) RSS(name string) (RSS, error) {
	v, err := c.k.rss(name)
	return v, nl.Wrap("read rss of", name, err)
}

// PrivateFlags reads the switches that only this driver has, by the driver's names. Drivers without
// answer nl.ErrNotSupported.
func (c Client) PrivateFlags(name string) (map[string]bool, error) {
	v, err := c.k.privateFlags(name)
	return v, nl.Wrap("read private flags of", name, err)
}

// Driver names driver, firmware and bus address.
func (c Client) Driver(name string) (DriverInfo, error) {
	v, err := c.k.driver(name)
	return v, nl.Wrap("read driver", name, err)
}

// Statistics reads the driver's own counters by name (ethtool -S). Names repeat in some drivers;
// the last one then wins.
func (c Client) Statistics(name string) (map[string]uint64, error) {
	v, err := c.k.statistics(name)
	return v, nl.Wrap("read statistics", name, err)
}

// SetFeature switches one offload by the kernel's name and reads it back: a change that the kernel
// took and did not make is nl.ErrNotApplied, one that the driver fixes nl.ErrNotSupported, an
// unknown name fs.ErrNotExist.
func (c Client) SetFeature(name, feature string, on bool) error {
	return nl.Wrap("set feature "+feature+" of", name, c.k.setFeature(name, feature, on))
}

// SetRing sets the number of descriptors of one direction, "rx" or "tx", or one of the
// RingParameters.
//
// Like SetChannel, SetCoalesce and SetPause it reads back: it is nil when the driver rounded the
// number, and callers who need to know what holds now read it; it is nl.ErrNotApplied when another
// value was asked for and nothing changed. A value that is set already is not sent, since drivers
// stop the card for every change. Somebody else who sets the number back at the same moment makes
// it look as if nothing had changed. A number above the driver's maximum is EINVAL with the
// kernel's sentence.
func (c Client) SetRing(name, direction string, descriptors uint32) error {
	return nl.Wrap("set "+direction+" ring of", name, c.k.setRing(name, direction, descriptors))
}

// SetChannel sets a queue count: kind is "combined", "rx" or "tx". See SetRing for what is read
// back.
func (c Client) SetChannel(name, kind string, n uint32) error {
	return nl.Wrap("set "+kind+" channels of", name, c.k.setChannel(name, kind, n))
}

// SetCoalesce sets one interrupt moderation parameter by the key that Coalesce gives it. A key that
// no kernel has is fs.ErrNotExist, one that the driver has not nl.ErrNotSupported. See SetRing for
// what is read back.
func (c Client) SetCoalesce(name, key string, v uint32) error {
	return nl.Wrap("set coalescing "+key+" of", name, c.k.setCoalesce(name, key, v))
}

// SetPause sets the flow control. A link that negotiates is renegotiated by it and down for seconds
// on many cards. See SetRing for what is read back.
func (c Client) SetPause(name string, p Pause) error {
	return nl.Wrap("set pause of", name, c.k.setPause(name, p))
}

// SetEEE switches Energy-Efficient Ethernet on or off and reads it back. The link is renegotiated
// and down for seconds on most cards.
func (c Client) SetEEE(name string, on bool) error {
	return nl.Wrap("set eee of", name, c.k.setEEE(name, on))
}

// SetPrivateFlag switches one of the driver's own flags and reads it back. An unknown flag is
// fs.ErrNotExist.
func (c Client) SetPrivateFlag(name, flag string, on bool) error {
	return nl.Wrap("set private flag "+flag+" of", name, c.k.setPrivateFlag(name, flag, on))
}

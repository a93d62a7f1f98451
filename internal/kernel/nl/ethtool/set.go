package ethtool

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// RSSKey reads the key of the receive hash. Whoever knows it can aim all of his flows at one queue,
// which is why [RSS] leaves it out: it is for an undo, and for nothing that leaves the host.
func (c Client) RSSKey(name string) ([]byte, error) {
	v, err := c.k.rssKey(name)
	return v, nl.Wrap("read rss key of", name, err)
}

// SetRSSIndirection sets which queue each entry of the table names; an empty table asks for the
// driver's own. The length must be that of the present one. Packets of a flow that changes its
// queue may overtake each other once.
func (c Client) SetRSSIndirection(name string, table []uint32) error {
	return nl.Wrap("set rss indirection of", name, c.k.setRSSIndirection(name, table))
}

// SetRSSKey sets the key of the receive hash, which must have the length of the present one.
func (c Client) SetRSSKey(name string, key []byte) error {
	return nl.Wrap("set rss key of", name, c.k.setRSSKey(name, key))
}

// SetRSSFunction picks the receive hash by the name that RSS gives it: toeplitz, xor, crc32.
func (c Client) SetRSSFunction(name, function string) error {
	return nl.Wrap("set rss function of", name, c.k.setRSSFunction(name, function))
}

// HashFields reads which fields of a packet the receive hash takes for a kind of flow (tcp4, udp4,
// sctp4, tcp6, udp6, sctp6), in the letters of ethtool(8) -N rx-flow-hash: m, v, t, s, d, f, n, r;
// empty for none.
func (c Client) HashFields(name, flow string) (string, error) {
	v, err := c.k.hashFields(name, flow)
	return v, nl.Wrap("read hash fields of", name, err)
}

// SetHashFields sets them and reads them back. Drivers know a few combinations and refuse the
// others.
func (c Client) SetHashFields(name, flow, fields string) error {
	return nl.Wrap("set hash fields of", name, c.k.setHashFields(name, flow, fields))
}

// SetFEC sets the forward error correction in the words of FEC: the driver's choice, some modes, or
// both. The link goes down and is trained anew.
func (c Client) SetFEC(name string, auto bool, modes []string) error {
	return nl.Wrap("set fec of", name, c.k.setFEC(name, auto, modes))
}

// LinkMode is how a link comes to its speed: it negotiates and offers some modes, or it is forced
// to one.
type LinkMode struct {
	Autoneg       bool
	Modes         []string // offered, in the words of LinkModes: 1000baseT/Full; of a forced one nil
	SpeedMegabits uint32   // of a forced one, in Mb/s
	Duplex        string   // of a forced one: half or full
}

func (m LinkMode) sorted() []string { return slices.Sorted(slices.Values(m.Modes)) }

// Speeds are the modes of a set that are speeds, without ports, pause and error correction: those
// that have a medium in their name (1000baseT/Full).
func (m LinkModes) Speeds() (supported, offered []string) { return speeds(m.Supported), m.offered() }

func (m LinkModes) offered() []string { return speeds(m.Advertised) }

func speeds(modes []string) []string {
	return slices.DeleteFunc(slices.Clone(modes), func(m string) bool { return !strings.Contains(m, "base") })
}

// SetLinkMode changes how a link comes to its speed. It goes down for seconds, and for good when
// the other end has no mode in common or is not forced to the same. A mode that the driver refuses
// leaves the link as it was.
func (c Client) SetLinkMode(name string, m LinkMode) error {
	return nl.Wrap("set link mode of", name, c.k.setLinkMode(name, m))
}

// Tunable reads one of the driver's odd numbers: rx-copybreak and tx-copybreak (bytes up to which a
// packet is copied rather than mapped), pfc-prevention-tout (milliseconds), tx-buf-size (bytes).
// Drivers without answer nl.ErrNotSupported.
func (c Client) Tunable(name, which string) (uint32, error) {
	v, err := c.k.tunable(name, which)
	return v, nl.Wrap("read "+which+" of", name, err)
}

// SetTunable sets one of them.
func (c Client) SetTunable(name, which string, v uint32) error {
	return nl.Wrap("set "+which+" of", name, c.k.setTunable(name, which, v))
}

// RingParameters reads what goes with the rings besides their length, by the words of ethtool(8)
// -G: rx-buf-len and tx-push-buf-len, hds-thresh, cqe-size (bytes), tx-push and rx-push (0 or 1),
// tcp-data-split (1 off, 2 on). What the driver does not tell is absent. SetRing sets them by the
// same words.
func (c Client) RingParameters(name string) (map[string]uint32, error) {
	v, err := c.k.ringParameters(name)
	return v, nl.Wrap("read ring parameters of", name, err)
}

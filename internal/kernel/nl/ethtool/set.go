package ethtool

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// RSSKey reads the key of the receive hash. An attacker who knows it can send all flows to one
// queue. It is therefore absent from [RSS]; use it only for an undo, and never let it leave the
// host.
func (c Client) RSSKey(name string) ([]byte, error) {
	v, err := c.k.rssKey(name)
	return v, nl.Wrap("read rss key of", name, err)
}

// SetRSSIndirection sets the queue of each table entry. An empty table restores the driver's
// default. The length must equal that of the present table. Packets of a flow that moves to another
// queue may be reordered once.
func (c Client) SetRSSIndirection(name string, table []uint32) error {
	return nl.Wrap("set rss indirection of", name, c.k.setRSSIndirection(name, table))
}

// SetRSSKey sets the key of the receive hash. Its length must equal that of the present key.
func (c Client) SetRSSKey(name string, key []byte) error {
	return nl.Wrap("set rss key of", name, c.k.setRSSKey(name, key))
}

// SetRSSFunction selects the receive hash under the name that RSS uses: toeplitz, xor, crc32.
func (c Client) SetRSSFunction(name, function string) error {
	return nl.Wrap("set rss function of", name, c.k.setRSSFunction(name, function))
}

// HashFields reads the packet fields that the receive hash uses for a kind of flow (tcp4, udp4,
// sctp4, tcp6, udp6, sctp6). The result has the letters of ethtool(8) -N rx-flow-hash: m, v, t, s,
// d, f, n, r; it is empty for no fields.
func (c Client) HashFields(name, flow string) (string, error) {
	v, err := c.k.hashFields(name, flow)
	return v, nl.Wrap("read hash fields of", name, err)
}

// SetHashFields sets the fields and reads them back. Drivers support a few combinations and refuse
// all others.
func (c Client) SetHashFields(name, flow, fields string) error {
	return nl.Wrap("set hash fields of", name, c.k.setHashFields(name, flow, fields))
}

// SetFEC sets the forward error correction: auto for the driver's choice, some modes under the
// names of FEC, or both. The link goes down and retrains.
func (c Client) SetFEC(name string, auto bool, modes []string) error {
	return nl.Wrap("set fec of", name, c.k.setFEC(name, auto, modes))
}

// LinkMode describes how a link gets its speed: either it negotiates and offers some modes, or it
// is forced to one.
type LinkMode struct {
	Autoneg       bool
	Modes         []string // offered, named as in LinkModes: 1000baseT/Full; of a forced one nil
	SpeedMegabits uint32   // of a forced one, in Mb/s
	Duplex        string   // of a forced one: half or full
}

func (m LinkMode) sorted() []string { return slices.Sorted(slices.Values(m.Modes)) }

// Speeds returns the supported and the offered modes that are speeds. These have a medium in their
// name (1000baseT/Full); ports, pause and error correction are omitted.
func (m LinkModes) Speeds() (supported, offered []string) { return speeds(m.Supported), m.offered() }

func (m LinkModes) offered() []string { return speeds(m.Advertised) }

func speeds(modes []string) []string {
	return slices.DeleteFunc(slices.Clone(modes), func(m string) bool { return !strings.Contains(m, "base") })
}

// SetLinkMode changes how a link gets its speed. The link goes down for seconds, and permanently if
// the other end has no common mode or is not forced to the same mode. If the driver refuses the
// mode, the link keeps the old one.
func (c Client) SetLinkMode(name string, m LinkMode) error {
	return nl.Wrap("set link mode of", name, c.k.setLinkMode(name, m))
}

// Tunable reads one of the driver's tunables: rx-copybreak and tx-copybreak (bytes up to which a
// packet is copied rather than mapped), pfc-prevention-tout (milliseconds), tx-buf-size (bytes).
// For drivers without it, the error is nl.ErrNotSupported.
func (c Client) Tunable(name, which string) (uint32, error) {
	v, err := c.k.tunable(name, which)
	return v, nl.Wrap("read "+which+" of", name, err)
}

// SetTunable sets one of the driver's tunables. See Tunable for names and units.
func (c Client) SetTunable(name, which string, v uint32) error {
	return nl.Wrap("set "+which+" of", name, c.k.setTunable(name, which, v))
}

// RingParameters reads the settings of the rings besides their length, under the names of
// ethtool(8) -G: rx-buf-len and tx-push-buf-len, hds-thresh, cqe-size (bytes), tx-push and rx-push
// (0 or 1), tcp-data-split (1 off, 2 on). A setting that the driver does not report is absent.
// SetRing sets them under the same names.
func (c Client) RingParameters(name string) (map[string]uint32, error) {
	v, err := c.k.ringParameters(name)
	return v, nl.Wrap("read ring parameters of", name, err)
}

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// told is what only netlink tells, from the kernel or from the archive's linerate directory. The
// two give the same types, so that everything above cannot know which it was, and every golden test
// of an archive is one of the code that reads a living host.
type told struct {
	links     []toldLink
	addresses []toldAddress
	routes    []Route

	// Why a part is empty; nil where it was told.
	linksErr, addressesErr, routesErr error
}

// toldLink is one interface of linerate/links.json.
type toldLink struct {
	Index      int    `json:"index"`
	Name       string `json:"name"`
	Kind       string `json:"kind,omitempty"` // veth, vlan, bond, …; empty for hardware
	MAC        string `json:"mac,omitempty"`
	MTUBytes   int    `json:"mtu_bytes"`
	TxQueueLen int    `json:"tx_queue_length_packets,omitempty"`
	Up         bool   `json:"up"`
	Carrier    bool   `json:"carrier"`
	Qdisc      string `json:"qdisc,omitempty"`

	ParentIndex  int    `json:"parent_index,omitempty"` // IFLA_LINK: what it was made on, or the other end of a veth
	MasterIndex  int    `json:"master_index,omitempty"` // IFLA_MASTER
	VLANID       int    `json:"vlan_id,omitempty"`
	VLANProtocol string `json:"vlan_protocol,omitempty"`
	BondMode     string `json:"bond_mode,omitempty"`
}

// toldAddress is one address of linerate/addresses.json.
type toldAddress struct {
	Index int    `json:"index"`
	CIDR  string `json:"cidr"`
}

// toldEthtool is one interface of linerate/ethtool.json. Every part may be missing by itself; a
// driver that has no rings is as good as one that nobody asked.
type toldEthtool struct {
	Driver          string             `json:"driver,omitempty"`
	Bus             string             `json:"bus,omitempty"` // the device's address on its bus; empty for software
	SpeedBitsPerSec float64            `json:"speed_bits_per_second,omitempty"`
	Duplex          string             `json:"duplex,omitempty"`
	Rings           *Rings             `json:"rings,omitempty"`
	Coalesce        map[string]uint32  `json:"coalesce,omitempty"`
	Features        map[string]Feature `json:"features,omitempty"`
	Channels        *Channels          `json:"channels,omitempty"`
	Statistics      map[string]uint64  `json:"statistics,omitempty"`
	// Card has what inspect says of the hardware alone, in the same words.
	Card *Card `json:"card,omitempty"`

	refused []refusal // what the kernel or the driver answered no to
}

// refusal is one question that got no answer, with the kernel's word for it (EOPNOTSUPP, EPERM,
// ENODEV).
type refusal struct {
	what string
	err  error
}

// toldQdisc is one queueing discipline of linerate/qdiscs.json. Parent and handle are tc's 32-bit
// numbers, major in the upper half; they make the tree, and are kept though only totals are
// computed, since an archive is taken once and read by later versions.
type toldQdisc struct {
	Interface string `json:"interface"`
	Kind      string `json:"kind"`
	Parent    uint32 `json:"parent"`
	Handle    uint32 `json:"handle"`
	QdiscState
}

// hostFile is linerate/host.json: what a copy of files cannot say of itself. Before Linux 6.1 no
// file has the machine's architecture.
type hostFile struct {
	Time time.Time `json:"time"`
	Arch string    `json:"arch,omitempty"`
}

// hostFile reads it; a missing or broken one is empty.
func (src *source) hostFile() hostFile {
	var h hostFile
	_ = src.decode("host.json", &h) // Everything in it may be absent.
	return h
}

// decode reads one JSON file of the archive. A missing one is errNotTold.
func (src *source) decode(name string, into any) error {
	b, err := src.Read("linerate/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("linerate/%s: %w", name, errNotTold)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("read linerate/%s: %w", name, err)
	}
	return nil
}

// tell gives all that netlink told.
func (src *source) tell() *told {
	if src.Live() {
		return src.askKernel()
	}
	t := &told{}
	// ethtool.json without links.json is of no use, so one sentence about the links is enough.
	t.linksErr = src.decode("links.json", &t.links)
	t.addressesErr = src.decode("addresses.json", &t.addresses)
	t.routesErr = src.decode("routes.json", &t.routes)
	if err := src.decodeEthtool(); err != nil && t.linksErr == nil {
		t.linksErr = err
	}
	return t
}

// decodeEthtool reads what an archive holds of all interfaces, once: it is asked for interface by
// interface, and on a large host the file is too.
func (src *source) decodeEthtool() error {
	if src.archived != nil {
		return nil
	}
	var all map[string]toldEthtool
	if err := src.decode("ethtool.json", &all); err != nil {
		return err
	}
	src.archived = all
	return nil
}

// ethtool gives what ethtool's netlink family tells about one interface.
func (src *source) ethtool(name string) toldEthtool {
	if src.Live() {
		if src.asleep(name) {
			return toldEthtool{}
		}
		return src.askEthtool(name)
	}
	return src.archived[name]
}

// qdiscs gives the queueing disciplines with their totals.
func (src *source) qdiscs() ([]toldQdisc, error) {
	if src.Live() {
		return src.askQdiscs()
	}
	var q []toldQdisc
	return q, src.decode("qdiscs.json", &q)
}

// driverStatistics gives the driver's own counters of one interface.
func (src *source) driverStatistics(name string) (map[string]uint64, error) {
	if src.Live() {
		if src.asleep(name) {
			return nil, nil
		}
		return src.askStatistics(name)
	}
	if err := src.decodeEthtool(); err != nil {
		return nil, err
	}
	return src.archived[name].Statistics, nil
}

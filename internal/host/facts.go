package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// facts is what only netlink reports, from the kernel or from the archive's linerate directory.
// Both give the same types, so that the code above treats them the same way and every golden test
// of an archive also tests the code that reads a live host.
type facts struct {
	links     []linkFact
	addresses []addressFact
	routes    []Route

	// The reason for an empty part; nil if it was reported.
	linksErr, addressesErr, routesErr error
}

// linkFact is one interface of linerate/links.json.
type linkFact struct {
	Index      int    `json:"index"`
	Name       string `json:"name"`
	Kind       string `json:"kind,omitempty"` // veth, vlan, bond, …; empty for hardware
	MAC        string `json:"mac,omitempty"`
	MTUBytes   int    `json:"mtu_bytes"`
	TxQueueLen int    `json:"tx_queue_length_packets,omitempty"`
	Up         bool   `json:"up"`
	Carrier    bool   `json:"carrier"`
	Qdisc      string `json:"qdisc,omitempty"`

	ParentIndex int `json:"parent_index,omitempty"` // IFLA_LINK: the lower interface, or the other end of a veth
	MasterIndex int `json:"master_index,omitempty"` // IFLA_MASTER
	// The same by name, of a report whose list of interfaces lacks them.
	Parent       string `json:"parent,omitempty"`
	Master       string `json:"master,omitempty"`
	VLANID       int    `json:"vlan_id,omitempty"`
	VLANProtocol string `json:"vlan_protocol,omitempty"`
	BondMode     string `json:"bond_mode,omitempty"`
}

// addressFact is one address of linerate/addresses.json.
type addressFact struct {
	Index int    `json:"index"`
	CIDR  string `json:"cidr"`
}

// ethtoolFacts is one interface of linerate/ethtool.json. Every part may be missing: a driver
// without rings looks like one that was not asked.
type ethtoolFacts struct {
	Driver          string             `json:"driver,omitempty"`
	Bus             string             `json:"bus,omitempty"` // the device's address on its bus; empty for software
	SpeedBitsPerSec float64            `json:"speed_bits_per_second,omitempty"`
	Duplex          string             `json:"duplex,omitempty"`
	Rings           *Rings             `json:"rings,omitempty"`
	Coalesce        map[string]uint32  `json:"coalesce,omitempty"`
	Features        map[string]Feature `json:"features,omitempty"`
	Channels        *Channels          `json:"channels,omitempty"`
	Statistics      map[string]uint64  `json:"statistics,omitempty"`
	// Card holds the hardware facts in the form of inspect.
	Card *Card `json:"card,omitempty"`

	refused []refusal // the questions that the kernel or the driver refused
}

// refusal is one question without an answer, with the kernel's error (EOPNOTSUPP, EPERM, ENODEV).
type refusal struct {
	what string
	err  error
}

// qdiscFact is one queueing discipline of linerate/qdiscs.json. Parent and handle are tc's 32-bit
// numbers, major in the upper half. They make the tree; they are kept although only totals are
// computed now, since later versions also read an archive.
type qdiscFact struct {
	Interface string `json:"interface"`
	Kind      string `json:"kind"`
	Parent    uint32 `json:"parent"`
	Handle    uint32 `json:"handle"`
	QdiscState
}

// hostFile is linerate/host.json: what copied files do not contain. Before Linux 6.1 no file has
// the machine's architecture.
type hostFile struct {
	Time time.Time `json:"time"`
	Arch string    `json:"arch,omitempty"`
}

// hostFile reads the file; a missing or broken one is empty.
func (src *source) hostFile() hostFile {
	var h hostFile
	_ = src.decode("host.json", &h) // Everything in it may be absent.
	return h
}

// decode reads one JSON file of the archive. It returns errNotArchived for a missing file.
func (src *source) decode(name string, into any) error {
	b, err := src.Read("linerate/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("linerate/%s: %w", name, errNotArchived)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("read linerate/%s: %w", name, err)
	}
	return nil
}

// facts returns everything that netlink reported.
func (src *source) facts() *facts {
	if src.Live() {
		return src.askKernel()
	}
	t := &facts{}
	// ethtool.json is useless without links.json, so one sentence about the links is enough.
	t.linksErr = src.decode("links.json", &t.links)
	t.addressesErr = src.decode("addresses.json", &t.addresses)
	t.routesErr = src.decode("routes.json", &t.routes)
	if err := src.decodeEthtool(); err != nil && t.linksErr == nil {
		t.linksErr = err
	}
	return t
}

// decodeEthtool decodes an archive's file of all interfaces, once: callers ask interface by
// interface, and on a large host the file is large.
func (src *source) decodeEthtool() error {
	if src.archived != nil {
		return nil
	}
	var all map[string]ethtoolFacts
	if err := src.decode("ethtool.json", &all); err != nil {
		return err
	}
	src.archived = all
	return nil
}

// ethtool returns what ethtool's netlink family reports about one interface.
func (src *source) ethtool(name string) ethtoolFacts {
	if src.Live() {
		if src.asleep(name) {
			return ethtoolFacts{}
		}
		return src.askEthtool(name)
	}
	return src.archived[name]
}

// qdiscs returns the queueing disciplines with their totals.
func (src *source) qdiscs() ([]qdiscFact, error) {
	if src.Live() {
		return src.askQdiscs()
	}
	var q []qdiscFact
	return q, src.decode("qdiscs.json", &q)
}

// driverStatistics returns the driver's own counters of one interface.
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

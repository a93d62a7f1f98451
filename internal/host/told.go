package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// told is what only netlink tells, from the kernel or from the archive's linerate directory.
type told struct {
	links     []toldLink
	addresses []toldAddress
	routes    []Route
	ethtool   map[string]toldEthtool // of an archive; the running system is asked interface by interface

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
}

// toldAddress is one address of linerate/addresses.json.
type toldAddress struct {
	Index int    `json:"index"`
	CIDR  string `json:"cidr"`
}

// toldEthtool is one interface of linerate/ethtool.json.
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

	refused []refusal // what the kernel or the driver answered no to
}

// refusal is one question that got no answer.
type refusal struct {
	what string
	err  error
}

// toldQdisc is one queueing discipline of linerate/qdiscs.json.
type toldQdisc struct {
	Interface    string `json:"interface"`
	Kind         string `json:"kind"`
	Parent       uint32 `json:"parent"`
	Handle       uint32 `json:"handle"`
	Drops        uint64 `json:"drops_total"`
	Requeues     uint64 `json:"requeues_total"`
	Overlimits   uint64 `json:"overlimits_total"`
	BacklogBytes uint64 `json:"backlog_bytes"`
}

// hostFile is linerate/host.json.
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
	b, err := src.read("linerate/" + name)
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
	if src.live() {
		return src.askKernel()
	}
	t := &told{}
	t.linksErr = src.decode("links.json", &t.links)
	t.addressesErr = src.decode("addresses.json", &t.addresses)
	t.routesErr = src.decode("routes.json", &t.routes)
	if err := src.decode("ethtool.json", &t.ethtool); err != nil && t.linksErr == nil {
		t.linksErr = err
	}
	return t
}

// ethtool gives what ethtool's netlink family tells about one interface.
func (src *source) ethtool(t *told, name string) toldEthtool {
	if src.live() {
		return src.askEthtool(name)
	}
	return t.ethtool[name]
}

// qdiscs gives the queueing disciplines with their totals.
func (src *source) qdiscs() ([]toldQdisc, error) {
	if src.live() {
		return src.askQdiscs()
	}
	var q []toldQdisc
	return q, src.decode("qdiscs.json", &q)
}

// driverStatistics gives the driver's own counters of one interface.
func (src *source) driverStatistics(name string) (map[string]uint64, error) {
	if src.live() {
		return src.askStatistics(name)
	}
	var all map[string]toldEthtool
	if err := src.decode("ethtool.json", &all); err != nil {
		return nil, err
	}
	return all[name].Statistics, nil
}

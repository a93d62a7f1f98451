package host

import (
	"errors"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/nl/route"
	"github.com/linerate/linerate/internal/kernel/nl/tc"
)

// dial opens netlink once per source, in the network namespace of the calling thread. A socket
// stays in the namespace in which it was opened, so a client must not outlive the source: the next
// reading may run on another thread. A refusal is kept as well, so that a host without netlink is
// not asked again for every interface.
func (src *source) dial() (*nl.Client, error) {
	// Once per source and not once per program: a goroutine's thread may be in another namespace at
	// the next reading.
	if src.client == nil && src.clientErr == nil {
		src.client, src.clientErr = nl.Dial()
	}
	return src.client, src.clientErr
}

// askLinks lists the interfaces with one dump (RTM_GETLINK), the closest that Linux comes to one
// moment.
func (src *source) askLinks() ([]linkFact, error) {
	client, err := src.dial()
	if err != nil {
		return nil, err
	}
	links, err := client.Links()
	if err != nil {
		return nil, err
	}
	all := make([]linkFact, 0, len(links))
	for _, l := range links {
		all = append(all, fromLink(l))
	}
	return all, nil
}

// askLink reads one interface. Asking by name avoids listing thousands of interfaces in every
// reading.
func (src *source) askLink(name string) (linkFact, error) {
	client, err := src.dial()
	if err != nil {
		return linkFact{}, err
	}
	l, err := client.LinkByName(name)
	return fromLink(l), err
}

// fromLink converts nl's answer to the archive's format, which must not change when nl learns more.
func fromLink(l nl.Link) linkFact {
	return linkFact{
		Index: l.Index, Name: l.Name, Kind: l.Kind, MAC: l.MAC, MTUBytes: l.MTU, TxQueueLen: l.TxQueueLen,
		Up: l.Up, Carrier: l.Carrier, Qdisc: l.Qdisc, ParentIndex: l.ParentIndex, MasterIndex: l.MasterIndex,
		VLANID: l.VLANID, VLANProtocol: l.VLANProtocol, BondMode: l.BondMode,
	}
}

// askKernel asks netlink for everything that has one answer for all interfaces. Each part can fail
// alone: a sandbox may allow links and refuse routes. It reads only the main routing table, which
// administrators and DHCP use.
func (src *source) askKernel() *facts {
	t := &facts{}
	client, err := src.dial()
	if err != nil {
		t.linksErr, t.addressesErr, t.routesErr = err, err, err
		return t
	}
	t.links, t.linksErr = src.askLinks()
	addresses, err := client.Addresses()
	t.addressesErr = err
	for _, a := range addresses {
		t.addresses = append(t.addresses, addressFact{Index: a.Index, CIDR: a.CIDR})
	}
	routes, err := route.New(client).List()
	t.routesErr = err
	for _, r := range routes {
		var locked []string
		for _, metric := range r.Locked {
			locked = append(locked, string(metric))
		}
		t.routes = append(t.routes, Route{
			Destination: r.Destination, Gateway: r.Gateway, Interface: r.Interface, Source: r.Source,
			Priority: r.Priority, Protocol: r.Protocol,
			WindowBytes: r.Window, MTUBytes: r.MTU, InitCwnd: r.InitCwnd, InitRwnd: r.InitRwnd, AdvMSSBytes: r.AdvMSS,
			Quickack: r.Quickack, Congestion: r.Congestion, RTOMinSec: float64(r.RTOMin) / 1e3, ECN: r.ECN,
			Locked: locked,
		})
	}
	return t
}

// askEthtool asks about one interface. Each part may be refused alone, because drivers choose what
// they implement. It keeps refusals for sayRefusals, which knows whether the interface is hardware,
// and reports nothing itself.
func (src *source) askEthtool(name string) ethtoolFacts {
	var e ethtoolFacts
	client, err := src.dial()
	if err != nil {
		return e // readInterfaces has reported it.
	}
	// Kept for later: whether a refusal is reported depends on the kind of the interface, which
	// sysfs shows later.
	refuse := func(what string, err error) bool {
		if err != nil {
			e.refused = append(e.refused, refusal{what, err})
		}
		return err == nil
	}
	card := ethtool.New(client)
	if d, err := card.Driver(name); refuse("driver", err) {
		e.Driver, e.Bus = d.Driver, d.Bus
		// The driver of tun and tap, which is no hardware, reports which of the two it is in the
		// field of the bus (tun_get_drvinfo).
		if d.Bus == "tun" || d.Bus == "tap" {
			e.Bus = ""
		}
		if e.Bus != "" {
			e.Card = askCard(card, name, d, refuse)
		}
	}
	// Each of these is a question to the driver, which may refuse any of them and answer the
	// others.
	if speed, duplex, err := card.LinkMode(name); refuse("speed", err) {
		e.SpeedBitsPerSec, e.Duplex = speed, duplex
	}
	if rx, tx, err := card.Rings(name); refuse("ring sizes", err) {
		e.Rings = &Rings{Rx: Ring(rx), Tx: Ring(tx)}
	}
	if c, err := card.Coalesce(name); refuse("interrupt coalescing", err) {
		e.Coalesce = c
	}
	if features, err := card.Features(name); refuse("offload features", err) {
		e.Features = make(map[string]Feature, len(features))
		for k, f := range features {
			e.Features[k] = Feature(f)
		}
	}
	if c, err := card.Channels(name); refuse("queue counts", err) {
		e.Channels = &Channels{
			Combined: c.Combined, MaxCombined: c.MaxCombined, Rx: c.Rx, MaxRx: c.MaxRx, Tx: c.Tx, MaxTx: c.MaxTx,
		}
	}
	return e
}

// askCard asks for what only hardware has. Facts that a driver does not support are not reported,
// because most drivers lack some. A lack of permission and a failure are reported.
func askCard(card ethtool.Client, name string, d ethtool.DriverInfo, refuse func(what string, err error) bool) *Card {
	c := &Card{FirmwareVersion: d.Firmware, DriverVersion: d.Version}
	answered := func(what string, err error) bool {
		return !errors.Is(err, nl.ErrNotSupported) && refuse(what, err)
	}
	if p, err := card.Pause(name); answered("flow control", err) {
		c.Pause = &Pause{Autoneg: p.Autoneg, Rx: p.Rx, Tx: p.Tx}
	}
	if e, err := card.EEE(name); answered("energy-efficient Ethernet", err) {
		c.EEE = &EEE{Enabled: e.Enabled, Active: e.Active, TxLPI: e.TxLPI,
			TxLPITimerInSeconds: float64(e.TxLPITimerMicroseconds) / 1e6}
	}
	if f, err := card.FEC(name); answered("forward error correction", err) {
		c.FEC = &FEC{Auto: f.Auto, Modes: f.Modes, Active: f.Active}
	}
	if r, err := card.RSS(name); answered("receive side scaling", err) {
		c.RSS = spread(r)
	}
	if flags, err := card.PrivateFlags(name); answered("private flags", err) && len(flags) > 0 {
		c.PrivateFlags = flags
	}
	if mac, err := card.PermanentAddress(name); answered("permanent address", err) {
		c.PermanentMAC = mac
	}
	if i, err := card.LinkInfo(name); answered("port", err) && i.Port != "other" && i.Port != "none" {
		c.Port = i.Port
	}
	if m, err := card.LinkModes(name); answered("link modes", err) {
		c.Modes = fromModes(m)
	}
	if c.empty() {
		return nil
	}
	return c
}

// fromModes leaves out entries of the kernel's set that are no modes of the wire: ports, pause and
// the rest have facts of their own. Nil: the device has no modes.
func fromModes(m ethtool.LinkModes) *LinkModes {
	wire := func(modes []string) []string {
		return slices.DeleteFunc(modes, func(mode string) bool { return !strings.Contains(mode, "base") })
	}
	out := &LinkModes{Autoneg: m.Autoneg, Supported: wire(m.Supported), Advertised: wire(m.Advertised),
		Partner: wire(m.Partner), Lanes: m.Lanes}
	if len(out.Supported) == 0 {
		return nil
	}
	return out
}

// askQdiscs lists the queueing disciplines of all interfaces (RTM_GETQDISC), inner ones too. The
// same answer has their statistics, so a reading of the counters needs only one dump.
func (src *source) askQdiscs() ([]qdiscFact, error) {
	client, err := src.dial()
	if err != nil {
		return nil, err
	}
	qdiscs, err := client.Qdiscs()
	if err != nil {
		return nil, err
	}
	all := make([]qdiscFact, 0, len(qdiscs))
	for _, q := range qdiscs {
		all = append(all, qdiscFact{
			Interface: q.Interface, Kind: q.Kind, Parent: q.Parent, Handle: q.Handle,
			QdiscState: QdiscState{
				Drops: q.Drops, Requeues: q.Requeues, Overlimits: q.Overlimits, BacklogBytes: q.BacklogBytes,
				BacklogPackets: q.BacklogPackets, Bytes: q.Bytes, Packets: q.Packets, Parameters: parameters(q),
			},
		})
	}
	return all, nil
}

// parameters converts the options of a discipline to words. Options that this kernel lacks and
// those of kinds that package tc does not know are absent.
func parameters(q nl.Qdisc) map[string]string {
	// As words, even in an archive: the bytes of the options depend on the kernel and the
	// architecture.
	words := make(map[string]string)
	for _, name := range tc.Parameters(q.Kind) {
		if v, err := tc.Get(q.Kind, name, q.Options); err == nil {
			words[name] = v
		}
	}
	return words
}

// askStatistics reads the driver's own counters (ethtool -S). Some drivers ask the card's firmware
// for them, which takes milliseconds and a lock that the configuration of the card needs as well;
// so only cards on a bus are asked.
func (src *source) askStatistics(name string) (map[string]uint64, error) {
	client, err := src.dial()
	if err != nil {
		return nil, err
	}
	return ethtool.New(client).Statistics(name)
}

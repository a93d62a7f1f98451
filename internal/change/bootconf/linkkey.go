package bootconf

import (
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// LinkKey is a setting of the [Link] section of a systemd .link file that corresponds to a knob.
type LinkKey struct {
	Name  string // RxBufferSize
	Since int    // version of systemd
	form  linkForm
}

// linkForm is how a value is written in a .link file.
type linkForm int

const (
	linkNumber       linkForm = iota
	linkBytes                 // may have the suffix K, M or G, to the base of 1024
	linkMicroseconds          // a time span with units; seconds without one
	linkSeconds
	linkSwitch
)

// linkKeys are the settings by the name of the knob without its interface (systemd.link(5)).
// Offloads whose key covers more bits than the knob (TransmitChecksumOffload=) are left out.
var linkKeys = map[string]LinkKey{
	"link/mtu":          {"MTUBytes", 211, linkBytes},
	"link/txqueuelen":   {"TransmitQueueLength", 248, linkNumber},
	"link/gso_max_size": {"GenericSegmentOffloadMaxBytes", 248, linkBytes},

	"ethtool/ring.rx":           {"RxBufferSize", 244, linkNumber},
	"ethtool/ring.tx":           {"TxBufferSize", 244, linkNumber},
	"ethtool/ring.rx-mini":      {"RxMiniBufferSize", 248, linkNumber},
	"ethtool/ring.rx-jumbo":     {"RxJumboBufferSize", 248, linkNumber},
	"ethtool/channels.rx":       {"RxChannels", 239, linkNumber},
	"ethtool/channels.tx":       {"TxChannels", 239, linkNumber},
	"ethtool/channels.other":    {"OtherChannels", 239, linkNumber},
	"ethtool/channels.combined": {"CombinedChannels", 239, linkNumber},

	"ethtool/pause.rx":      {"RxFlowControl", 246, linkSwitch},
	"ethtool/pause.tx":      {"TxFlowControl", 246, linkSwitch},
	"ethtool/pause.autoneg": {"AutoNegotiationFlowControl", 246, linkSwitch},

	"ethtool/feature.tx-tcp-segmentation":     {"TCPSegmentationOffload", 232, linkSwitch},
	"ethtool/feature.tx-tcp6-segmentation":    {"TCP6SegmentationOffload", 236, linkSwitch},
	"ethtool/feature.tx-generic-segmentation": {"GenericSegmentationOffload", 232, linkSwitch},
	"ethtool/feature.rx-gro":                  {"GenericReceiveOffload", 232, linkSwitch},
	"ethtool/feature.rx-gro-hw":               {"GenericReceiveOffloadHardware", 250, linkSwitch},
	"ethtool/feature.rx-lro":                  {"LargeReceiveOffload", 232, linkSwitch},
	"ethtool/feature.rx-checksum":             {"ReceiveChecksumOffload", 245, linkSwitch},
	"ethtool/feature.rx-ntuple-filter":        {"NTupleFilter", 250, linkSwitch},
	"ethtool/feature.rx-vlan-hw-parse":        {"ReceiveVLANCTAGHardwareAcceleration", 250, linkSwitch},
	"ethtool/feature.tx-vlan-hw-insert":       {"TransmitVLANCTAGHardwareAcceleration", 250, linkSwitch},
	"ethtool/feature.rx-vlan-filter":          {"ReceiveVLANCTAGFilter", 250, linkSwitch},

	"ethtool/coalesce.adaptive-rx":       {"UseAdaptiveRxCoalesce", 250, linkSwitch},
	"ethtool/coalesce.adaptive-tx":       {"UseAdaptiveTxCoalesce", 250, linkSwitch},
	"ethtool/coalesce.rx-usecs":          {"RxCoalesceSec", 250, linkMicroseconds},
	"ethtool/coalesce.rx-usecs-irq":      {"RxCoalesceIrqSec", 250, linkMicroseconds},
	"ethtool/coalesce.rx-usecs-low":      {"RxCoalesceLowSec", 250, linkMicroseconds},
	"ethtool/coalesce.rx-usecs-high":     {"RxCoalesceHighSec", 250, linkMicroseconds},
	"ethtool/coalesce.tx-usecs":          {"TxCoalesceSec", 250, linkMicroseconds},
	"ethtool/coalesce.tx-usecs-irq":      {"TxCoalesceIrqSec", 250, linkMicroseconds},
	"ethtool/coalesce.tx-usecs-low":      {"TxCoalesceLowSec", 250, linkMicroseconds},
	"ethtool/coalesce.tx-usecs-high":     {"TxCoalesceHighSec", 250, linkMicroseconds},
	"ethtool/coalesce.stats-block-usecs": {"StatisticsBlockCoalesceSec", 250, linkMicroseconds},
	"ethtool/coalesce.rx-frames":         {"RxMaxCoalescedFrames", 250, linkNumber},
	"ethtool/coalesce.rx-frames-irq":     {"RxMaxCoalescedIrqFrames", 250, linkNumber},
	"ethtool/coalesce.rx-frames-low":     {"RxMaxCoalescedLowFrames", 250, linkNumber},
	"ethtool/coalesce.rx-frames-high":    {"RxMaxCoalescedHighFrames", 250, linkNumber},
	"ethtool/coalesce.tx-frames":         {"TxMaxCoalescedFrames", 250, linkNumber},
	"ethtool/coalesce.tx-frames-irq":     {"TxMaxCoalescedIrqFrames", 250, linkNumber},
	"ethtool/coalesce.tx-frames-low":     {"TxMaxCoalescedLowFrames", 250, linkNumber},
	"ethtool/coalesce.tx-frames-high":    {"TxMaxCoalescedHighFrames", 250, linkNumber},
	"ethtool/coalesce.pkt-rate-low":      {"CoalescePacketRateLow", 250, linkNumber},
	"ethtool/coalesce.pkt-rate-high":     {"CoalescePacketRateHigh", 250, linkNumber},
	"ethtool/coalesce.sample-interval":   {"CoalescePacketRateSampleIntervalSec", 250, linkSeconds},
}

// LinkKeyOf returns the setting of a .link file that corresponds to a knob of an interface.
func LinkKeyOf(id knob.ID) (LinkKey, bool) {
	k, ok := linkKeys[id.Kind()+"/"+id.Attribute()]
	return k, ok
}

// KnobOf returns the knob of an interface that a setting of [Link] with this name corresponds to.
func KnobOf(setting, device string) (knob.ID, LinkKey, bool) {
	for name, k := range linkKeys {
		if k.Name == setting {
			kind, attribute, _ := strings.Cut(name, "/")
			return knob.ID(kind + ":" + device + "/" + attribute), k, true
		}
	}
	return "", LinkKey{}, false
}

// Text returns a value of a knob in the form of a .link file. False: the file cannot express it;
// for some numbers systemd treats 0 as "not set".
func (k LinkKey) Text(v knob.Value) (string, bool) {
	if k.form == linkSwitch {
		return map[knob.Value]string{"on": "yes", "off": "no"}[v], v == "on" || v == "off"
	}
	n, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil {
		return "", false
	}
	switch {
	case k.form == linkMicroseconds:
		return string(v) + "us", true
	case n == 0 && k.Name != "TransmitQueueLength":
		return "", false
	case k.Name == "GenericSegmentOffloadMaxBytes" && n > 65536:
		return "", false
	case k.form == linkSeconds:
		return string(v) + "s", true
	}
	return string(v), true
}

// timeUnits are the units of systemd.time(7) that apply to a NIC, in microseconds; longer names
// come first.
var timeUnits = []struct {
	name         string
	microseconds uint64
}{{"usec", 1}, {"msec", 1e3}, {"sec", 1e6}, {"us", 1}, {"µs", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"", 1e6}}

// Value reads the text of a .link file. False: this setting has no such value, or it means
// something different ("max").
func (k LinkKey) Value(text string) (knob.Value, bool) {
	text = strings.TrimSpace(text)
	number := func(s string, factor uint64) (knob.Value, bool) {
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
		return knob.Value(strconv.FormatUint(n*factor, 10)), err == nil
	}
	switch k.form {
	case linkSwitch:
		switch strings.ToLower(text) {
		case "1", "yes", "y", "true", "t", "on":
			return "on", true
		case "0", "no", "n", "false", "f", "off":
			return "off", true
		}
		return "", false
	case linkBytes:
		for i, suffix := range []string{"K", "M", "G"} {
			if s, ok := strings.CutSuffix(text, suffix); ok {
				return number(s, 1<<(10*(i+1)))
			}
		}
	case linkMicroseconds, linkSeconds:
		for _, u := range timeUnits {
			s, ok := strings.CutSuffix(text, u.name)
			if !ok {
				continue
			}
			v, ok := number(s, u.microseconds)
			if n, err := strconv.ParseUint(string(v), 10, 64); ok && err == nil && k.form == linkSeconds {
				v = knob.Value(strconv.FormatUint(n/1e6, 10))
			}
			return v, ok
		}
	}
	return number(text, 1)
}

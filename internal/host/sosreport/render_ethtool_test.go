package sosreport

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// The writers of this file are ethtool's: each writes what the tool prints of a card.

func renderDriver(c card) string {
	if c.Driver == "" {
		return "Cannot get driver information: Operation not supported\n"
	}
	var firmware, version string
	if c.Card != nil {
		firmware, version = c.Card.FirmwareVersion, c.Card.DriverVersion
	}
	return fmt.Sprintf("driver: %s\nversion: %s\nfirmware-version: %s\nexpansion-rom-version: \n"+
		"bus-info: %s\nsupports-statistics: yes\nsupports-test: yes\n", c.Driver, version, firmware, c.Bus)
}

func renderStatistics(c card) string {
	if len(c.Statistics) == 0 {
		return "no stats available\n"
	}
	b := "NIC statistics:\n"
	for _, name := range slices.Sorted(maps.Keys(c.Statistics)) {
		b += fmt.Sprintf("     %s: %d\n", name, c.Statistics[name])
	}
	return b
}

func renderRings(name string, c card) string {
	if c.Rings == nil {
		return "netlink error: Operation not supported\n"
	}
	const form = "RX:\t\t%d\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t%d\n"
	return fmt.Sprintf("Ring parameters for %s:\nPre-set maximums:\n"+form+"Current hardware settings:\n"+form+
		"RX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\toff\n",
		name, c.Rings.Rx.Max, c.Rings.Tx.Max, c.Rings.Rx.Current, c.Rings.Tx.Current)
}

func renderChannels(name string, c card) string {
	if c.Channels == nil {
		return "netlink error: Operation not supported\n"
	}
	const form = "RX:\t\t%d\nTX:\t\t%d\nOther:\t\tn/a\nCombined:\t%d\n"
	ch := c.Channels
	return fmt.Sprintf("Channel parameters for %s:\nPre-set maximums:\n"+form+"Current hardware settings:\n"+form, name,
		ch.MaxRx, ch.MaxTx, ch.MaxCombined, ch.Rx, ch.Tx, ch.Combined)
}

func renderCoalesce(name string, c card) string {
	if len(c.Coalesce) == 0 {
		return "netlink error: Operation not supported\n"
	}
	word := func(key string) string {
		switch v, ok := c.Coalesce[key]; {
		case !ok:
			return "n/a"
		case v == 0:
			return "off"
		}
		return "on"
	}
	b := fmt.Sprintf("Coalesce parameters for %s:\nAdaptive RX: %s  TX: %s\n", name, word("adaptive-rx"),
		word("adaptive-tx"))
	for _, key := range []string{
		"stats-block-usecs", "sample-interval", "pkt-rate-low", "pkt-rate-high", "", "rx-usecs", "rx-frames",
		"rx-usecs-irq", "rx-frames-irq", "", "tx-usecs", "tx-frames",
		"tx-usecs-irq", "tx-frames-irq", "", "rx-usecs-low", "rx-frames-low", "tx-usecs-low", "tx-frames-low", "",
		"rx-usecs-high", "rx-frames-high", "tx-usecs-high", "tx-frames-high",
	} {
		if key == "" {
			b += "\n"
			continue
		}
		value := "n/a"
		if v, ok := c.Coalesce[key]; ok {
			value = strconv.FormatUint(uint64(v), 10)
		}
		shown := key
		if strings.HasSuffix(key, "-low") || strings.HasSuffix(key, "-high") {
			shown = strings.Replace(key, "-frames-", "-frame-", 1)
		}
		b += shown + ":\t" + value + "\n"
	}
	return b + fmt.Sprintf("\nCQE mode RX: %s  TX: %s\n\n", word("cqe-mode-rx"), word("cqe-mode-tx"))
}

func renderFeatures(name string, c card) string {
	if len(c.Features) == 0 {
		return "Cannot get stats strings information: Operation not supported\n" // The capture did not ask.
	}
	b := "Features for " + name + ":\n"
	state := func(f host.Feature) string {
		text := onOff(f.On)
		if f.Fixed {
			text += " [fixed]"
		}
		return text
	}
	left := maps.Clone(c.Features)
	group := func(title string, member func(string) bool) {
		b += title + ": on\n"
		for _, key := range slices.Sorted(maps.Keys(left)) {
			if member(key) {
				b += "\t" + key + ": " + state(left[key]) + "\n"
				delete(left, key)
			}
		}
	}
	group("tx-checksumming", func(k string) bool { return strings.HasPrefix(k, "tx-checksum-") })
	group("scatter-gather", func(k string) bool { return strings.HasPrefix(k, "tx-scatter-gather") })
	group("tcp-segmentation-offload",
		func(k string) bool { return strings.HasPrefix(k, "tx-tcp") && strings.HasSuffix(k, "-segmentation") })
	for old, name := range map[string]string{
		"rx-checksumming": "rx-checksum", "generic-segmentation-offload": "tx-generic-segmentation",
		"generic-receive-offload": "rx-gro",
		"large-receive-offload":   "rx-lro", "rx-vlan-offload": "rx-vlan-hw-parse",
		"tx-vlan-offload": "tx-vlan-hw-insert", "ntuple-filters": "rx-ntuple-filter",
		"receive-hashing": "rx-hashing",
	} {
		if f, ok := left[name]; ok {
			b += old + ": " + state(f) + "\n"
			delete(left, name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		b += key + ": " + state(left[key]) + "\n"
	}
	return b
}

func renderSettings(name string, c card) string {
	b := "Settings for " + name + ":\n"
	list := func(title string, modes []string) {
		b += "\t" + title + ":   "
		if len(modes) == 0 {
			b += "Not reported\n"
		}
		for i, m := range modes {
			switch {
			case i == 0:
			case i%2 == 0:
				b += "\n\t                        "
			default:
				b += " "
			}
			b += m
		}
		if len(modes) > 0 {
			b += "\n"
		}
	}
	speed, duplex := "Unknown!", "Unknown! (255)"
	if c.SpeedBitsPerSec > 0 {
		speed = fmt.Sprintf("%.0fMb/s", c.SpeedBitsPerSec/1e6)
	}
	if c.Duplex != "" {
		duplex = strings.ToUpper(c.Duplex[:1]) + c.Duplex[1:]
	}
	port := "Other"
	var m host.LinkModes
	if c.Card != nil {
		if c.Card.Modes != nil {
			m = *c.Card.Modes
		}
		if text, ok := map[string]string{"twisted-pair": "Twisted Pair", "fibre": "FIBRE",
			"direct-attach": "Direct Attach Copper", "mii": "MII"}[c.Card.Port]; ok {
			port = text
		}
	}
	b += "\tSupported ports: [ TP ]\n"
	list("Supported link modes", m.Supported)
	b += "\tSupported pause frame use: No\n\tSupports auto-negotiation: Yes\n"
	list("Advertised link modes", m.Advertised)
	b += "\tAdvertised pause frame use: No\n\tAdvertised auto-negotiation: Yes\n"
	if len(m.Partner) > 0 {
		list("Link partner advertised link modes", m.Partner)
		b += "\tLink partner advertised pause frame use: No\n"
	}
	b += fmt.Sprintf("\tSpeed: %s\n", speed)
	if m.Lanes > 0 {
		b += fmt.Sprintf("\tLanes: %d\n", m.Lanes)
	}
	return b + fmt.Sprintf(
		"\tDuplex: %s\n\tAuto-negotiation: %s\n\tPort: %s\n\tPHYAD: 0\n\tTransceiver: internal\n"+
			"\tMDI-X: Unknown\n\tSupports Wake-on: d\n\tLink detected: yes\n",
		duplex, onOff(m.Autoneg), port)
}

func renderCard(networking func(command, text string), name string, c card) {
	if c.Card == nil {
		return
	}
	if p := c.Card.Pause; p != nil {
		networking("ethtool -a "+name,
			fmt.Sprintf("Pause parameters for %s:\nAutonegotiate:\t%s\nRX:\t\t%s\nTX:\t\t%s\n"+
				"RX negotiated: on\nTX negotiated: off\n\n", name, onOff(p.Autoneg), onOff(p.Rx), onOff(p.Tx)))
	}
	if e := c.Card.EEE; e != nil {
		status, timer := "disabled", "disabled"
		if e.Enabled {
			status = "enabled - inactive"
			if e.Active {
				status = "enabled - active"
			}
		}
		if e.TxLPI {
			timer = fmt.Sprintf("%.0f (us)", e.TxLPITimerInSeconds*1e6)
		}
		networking("ethtool --show-eee "+name,
			fmt.Sprintf("EEE settings for %s:\n\tEEE status: %s\n\tTx LPI: %s\n"+
				"\tSupported EEE link modes:  100baseT/Full\n", name, status, timer))
	}
	if len(c.Card.PrivateFlags) > 0 {
		b := "Private flags for " + name + ":\n"
		for _, flag := range slices.Sorted(maps.Keys(c.Card.PrivateFlags)) {
			b += fmt.Sprintf("%-20s: %s\n", flag, onOff(c.Card.PrivateFlags[flag]))
		}
		networking("ethtool --show-priv-flags "+name, b)
	}
	permanent := "not set"
	if c.Card.PermanentMAC != "" {
		permanent = c.Card.PermanentMAC
	}
	networking("ethtool -P "+name, "Permanent address: "+permanent+"\n")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

package advice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/bootconf"
)

// interfaceFile is what a text says about the interface that its next lines are for, in the files
// of NetworkManager, systemd, ifupdown and netplan.
type interfaceFile struct {
	keyfile bool   // a connection of NetworkManager (nm-settings-keyfile(5))
	netplan bool   // netplan(5)
	device  string // of the lines below it; empty: not said
}

var (
	keyfileHead = pattern.New(`(?m)^\[connection\]\s*$`)
	netplanHead = pattern.New(`(?m)^\s+(?:ethernets|bonds|bridges|vlans|wifis):\s*$`)
)

// name returns the interface, or a star.
func (f interfaceFile) name() string {
	if f.device == "" {
		return "*"
	}
	return f.device
}

// nmcli reads `nmcli connection add|modify NAME PROPERTY VALUE …`. The interface is a property too,
// and otherwise part of the connection, which is not in the text.
//
// Source: nmcli(1) and nm-settings-nmcli(5).
func (r *reader) nmcli(c, _ command) bool {
	words := c.words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	if len(words) < 4 || !strings.HasPrefix("connection", words[0]) ||
		!strings.HasPrefix("modify", words[1]) && !strings.HasPrefix("add", words[1]) {
		return true
	}
	device := "*"
	if at := slices.Index(words, "ifname"); at > 0 && at+1 < len(words) {
		device = words[at+1]
	} else if at := slices.Index(words, "connection.interface-name"); at > 0 && at+1 < len(words) {
		device = words[at+1]
	}
	var modes []string // three that mean something together
	for i := 2; i+1 < len(words); i++ {
		setting, property, ok := strings.Cut(strings.TrimPrefix(words[i], "+"), ".")
		switch {
		case property == "speed" || property == "duplex":
			modes = append(modes, property, words[i+1])
		case property == "auto-negotiate":
			modes = append(modes, "autoneg", onOff(words[i+1]))
		case words[i] == "mtu":
			r.interfaceOption(device, "ethernet", "mtu", words[i+1])
		case ok:
			r.interfaceOption(device, setting, property, words[i+1])
		default:
			continue
		}
		i++
	}
	r.linkModes(device, modes)
	return true
}

// interfaceOption adds one property of a connection, by the setting that it belongs to.
func (r *reader) interfaceOption(device, setting, property, value string) bool {
	value = strings.Trim(value, `"'`)
	switch setting {
	case "ethernet", "802-3-ethernet", "wifi", "802-11-wireless", "infiniband", "gsm", "wireguard", "ip-tunnel", "bond",
		"bridge", "vlan", "team":
		if property != "mtu" {
			return false
		}
		if value == "0" || value == "auto" || value == "" {
			return false // the default, which leaves the link as it is
		}
		r.add(Linux, "link:"+device+"/mtu", value)
	case "link":
		switch property {
		case "tx-queue-length":
			r.add(Linux, "link:"+device+"/txqueuelen", value)
		case "gso-max-size", "gro-max-size":
			r.add(Linux, "link:"+device+"/"+strings.ReplaceAll(property, "-", "_"), value)
		default:
			return false
		}
	case "ethtool":
		section, name, ok := strings.Cut(property, "-")
		option := networkManagerSections[section]
		if !ok || option == "" {
			return false
		}
		r.ethtoolOption(option, device, name, onOff(value))
	default:
		return false
	}
	return true
}

// ethtoolOption adds what one option of ethtool sets.
func (r *reader) ethtoolOption(option, device, name, value string) {
	r.ethtool(command{words: []string{"ethtool", option, device, name, value}})
}

// networkManagerSections are the groups of ethtool's options in NetworkManager, and the options of
// the program that they are.
var networkManagerSections = map[string]string{
	"ring": "-G", "feature": "-K", "coalesce": "-C", "channels": "-L", "pause": "-A",
}

// onOff writes the switches of files as ethtool has them.
func onOff(value string) string {
	switch strings.ToLower(value) {
	case "true", "yes", "1":
		return "on"
	case "false", "no", "0":
		return "off"
	}
	return value
}

// netplanOffloads are the offloads of netplan(5) that ethtool(8) calls otherwise; the others have
// its long names.
var netplanOffloads = map[string]string{
	"receive-checksum-offload": "rx", "transmit-checksum-offload": "tx",
	"tcp6-segmentation-offload": "tx-tcp6-segmentation",
}

var (
	keyLine    = pattern.New(`^([A-Za-z][\w.-]*)\s*=\s*(.*)$`)
	linkKey    = pattern.New(`^[A-Z]\w+$`)
	yamlLine   = pattern.New(`^([a-z][\w.*-]*):(?:\s+(\S.*?))?\s*(?:#.*)?$`)
	stanza     = pattern.New(`^(?:iface|auto|allow-hotplug|allow-auto|source|mapping)\s+(\S+)`)
	stanzaWord = pattern.New(`^(mtu|txqueuelen|offload-[\w-]+|` +
		`hardware-dma-ring-[\w-]+|hardware-irq-coalesce-[\w-]+)\s+(\S+)$`)
	stanzaHooks = pattern.New(`^(?:pre-up|up|post-up)\s+(\S.*)$`)
	stanzaDown  = pattern.New(`^(?:pre-down|down|post-down)\s`)
)

// interfaceLine reads a line of one of these files.
func (r *reader) interfaceLine(text string) bool {
	if m := stanza.FindStringSubmatch(text); m != nil {
		if strings.HasPrefix(text, "iface ") {
			r.of.device = m[1]
		}
		return true
	}
	if m := stanzaHooks.FindStringSubmatch(text); m != nil {
		return r.commands(splitCommands(m[1])) || r.within(m[1])
	}
	if stanzaDown.MatchString(text) {
		return true // it takes back what up has done
	}
	if m := stanzaWord.FindStringSubmatch(text); m != nil && r.of.device != "" {
		r.stanzaOption(m[1], strings.Trim(m[2], `"'`))
		return true
	}
	if r.of.netplan {
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			return r.netplanOption(m[1], strings.Trim(m[2], `"'`))
		}
	}
	m := keyLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	if _, ok := sysctlOS(m[1]); ok {
		return false // a page goes on behind the file
	}
	switch {
	case !linkKey.MatchString(m[1]) && !r.of.keyfile:
		return false
	case r.section == "Link" || r.section == "Match" || r.section == "Network" || r.section == "Route":
		return r.linkOption(m[1], strings.Trim(m[2], `"'`))
	case r.of.keyfile && r.section != "":
		if m[1] == "interface-name" && r.section == "connection" {
			r.of.device = m[2]
		}
		setting, property := r.section, m[1]
		if first, second, ok := strings.Cut(property, "."); ok { // ethernet.mtu, a default of NetworkManager.conf
			setting, property = first, second
		}
		r.interfaceOption(r.of.name(), setting, property, m[2])
		return keyfileSections[r.section]
	}
	return false
}

// keyfileSections are the sections of a connection whose other lines set nothing of speed.
var keyfileSections = map[string]bool{"connection": true, "ipv4": true, "ipv6": true, "proxy": true, "ethernet": true,
	"802-3-ethernet": true, "wifi": true, "wifi-security": true, "bond": true, "bridge": true, "bridge-port": true,
	"vlan": true, "user": true, "infiniband": true, "802-1x": true, "match": true, "ethtool": true, "link": true}

// stanzaOption reads the options that ethtool's and Debian's hooks add to interfaces(5).
func (r *reader) stanzaOption(name, value string) {
	device := r.of.name()
	if feature, ok := strings.CutPrefix(name, "offload-"); ok {
		r.ethtoolOption("-K", device, feature, value)
	} else if ring, ok := strings.CutPrefix(name, "hardware-dma-ring-"); ok {
		r.ethtoolOption("-G", device, ring, value)
	} else if wait, ok := strings.CutPrefix(name, "hardware-irq-coalesce-"); ok {
		r.ethtoolOption("-C", device, wait, value)
	} else {
		r.interfaceWords(Linux, device, []string{name, value})
	}
}

// netplanOption reads an option of netplan. A key without a value above them may be the interface.
func (r *reader) netplanOption(name, value string) bool {
	switch {
	case value == "":
		r.of.device = name
		return false
	case name == "mtu":
		r.add(Linux, "link:*/mtu", value)
	case strings.HasSuffix(name, "-offload"):
		r.ethtoolOption("-K", "*", cmp.Or(netplanOffloads[name], name), onOff(value))
	default:
		return false
	}
	return true
}

// linkOption reads an option of systemd.link(5) or systemd.network(5).
func (r *reader) linkOption(name, value string) bool {
	device := r.of.name()
	id, key, corresponds := bootconf.KnobOf(name, device)
	v, readable := key.Value(value)
	switch {
	case r.section == "Match":
		if (name == "OriginalName" || name == "Name") && !strings.ContainsAny(value, " !") {
			r.of.device = value
		}
	case name == "MTUBytes" && r.section == "Route":
		r.unread()
	case name == "TransmitChecksumOffload": // several bits, as ethtool's word has
		r.ethtoolOption("-K", device, "tx", onOff(value))
	case corresponds && value == "":
		// the default
	case corresponds && readable:
		r.add(Linux, string(id), string(v))
	case corresponds: // what the NIC has: max
		r.unread()
	case name == "InitialCongestionWindow":
		r.add(Linux, "route:default/initcwnd", value)
	case name == "InitialAdvertisedReceiveWindow":
		r.add(Linux, "route:default/initrwnd", value)
	case name == "QuickAck":
		r.add(Linux, "route:default/quickack", boolean(value))
	case strings.Contains(name, "Coalesce") || strings.Contains(name, "Offload") || strings.HasSuffix(name, "Bytes") ||
		name == "BitsPerSecond" || name == "Duplex" || name == "AutoNegotiation" || name == "Advertise":
		r.unread()
	}
	return true
}

// rcSwitches are switches of FreeBSD's rc.conf(5), and the sysctls that they set at boot.
var rcSwitches = map[string]string{
	"gateway_enable": "net.inet.ip.forwarding", "ipv6_gateway_enable": "net.inet6.ip6.forwarding",
	"icmp_drop_redirect": "net.inet.icmp.drop_redirect", "icmp_bmcastecho": "net.inet.icmp.bmcastecho",
	"tcp_extensions": "net.inet.tcp.rfc1323", "tcp_keepalive": "net.inet.tcp.always_keepalive",
	"tcp_drop_synfin": "net.inet.tcp.drop_synfin",
}

// rcOthers are variables of rc.conf that name, address and start something.
var rcOthers = pattern.New(`^(?:hostname|defaultrouter|ipv6_defaultrouter|cloned_interfaces|` +
	`wlans_\w+|vlans_\w+|` +
	`create_args_\w+|static_routes|route_\w+|kld_list|keymap|\w+_enable|\w+_flags|jail_\w+|dumpdev|zfs_\w+)$`)

// rcVariable reads a variable of rc.conf other than those of interfaces.
func (r *reader) rcVariable(name, value string) bool {
	sysctl := rcSwitches[name]
	if sysctl == "" || value == "" {
		return rcOthers.MatchString(name)
	}
	return r.sysctl(sysctl, boolean(value))
}

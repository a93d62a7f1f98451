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
	route   string // destination of the routes below it
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
		option := ethtoolGroups[section]
		if !ok || option == "" {
			return false
		}
		r.ethtoolOption(option, device, name, ethtoolValue(option, name, value))
	default:
		return false
	}
	return true
}

// ethtoolOption adds what one option of ethtool sets.
func (r *reader) ethtoolOption(option, device, name, value string) {
	r.ethtool(command{words: []string{"ethtool", option, device, name, value}})
}

// ethtoolGroups are the groups of ethtool's options in NetworkManager, nmstate and network roles,
// and the options of the program that they are.
var ethtoolGroups = table(`ring=-G feature=-K features=-K coalesce=-C channels=-L pause=-A`)

// ethtoolValue writes a switch as ethtool has it; other values are numbers.
func ethtoolValue(option, name, value string) string {
	if option == "-K" || option == "-A" || strings.HasPrefix(name, "adaptive") {
		return onOff(value)
	}
	return value
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
	if r.nixLink(text) {
		return true
	}
	m := keyLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	if _, ok := sysctlOS(m[1]); ok {
		return false // a page goes on behind the file
	}
	kind := disciplines[r.section]
	switch {
	case !linkKey.MatchString(m[1]) && !r.of.keyfile:
		return false
	case kind != "": // its parameters are a program, as those of tc are
		if n := len(r.advice.Settings) - 1; m[1] == "Parent" && m[2] != "root" && n >= 0 {
			r.advice.Settings = r.advice.Settings[:n] // that of the head
		}
		return true
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
var keyfileSections = setOf(`connection ipv4 ipv6 proxy ethernet 802-3-ethernet wifi wifi-security bond bridge bridge-port vlan
	user infiniband 802-1x match ethtool link`)

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
	case name == "to":
		r.of.route = value
		return false
	case routeKeys[name] != "":
		r.add(Linux, "route:"+cmp.Or(r.of.route, "default")+"/"+routeKeys[name], value)
	case name == "mtu":
		r.add(Linux, "link:*/mtu", value)
	case strings.HasSuffix(name, "-offload"):
		r.ethtoolOption("-K", "*", cmp.Or(netplanOffloads[name], name), onOff(value))
	default:
		return false
	}
	return true
}

// routeKeys are keys of a route in systemd.network(5) and in netplan(5), with the words of ip(8).
var routeKeys = table(`InitialCongestionWindow=initcwnd InitialAdvertisedReceiveWindow=initrwnd QuickAck=quickack
	MTUBytes=mtu TCPAdvertisedMaximumSegmentSize=advmss TCPCongestionControlAlgorithm=congctl
	TCPRetransmissionTimeoutSec=rto_min FastOpenNoCookie=fastopen_no_cookie congestion-window=initcwnd
	advertised-receive-window=initrwnd`)

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
	case name == "Destination":
		r.of.route = value
	case routeKeys[name] == "rto_min" && r.section == "Route":
		r.add(Linux, "route:"+cmp.Or(r.of.route, "default")+"/rto_min", milliseconds(value, "s"))
	case routeKeys[name] != "" && r.section == "Route":
		r.add(Linux, "route:"+cmp.Or(r.of.route, "default")+"/"+routeKeys[name], boolean(value))
	case name == "TransmitChecksumOffload": // several bits, as ethtool's word has
		r.ethtoolOption("-K", device, "tx", onOff(value))
	case corresponds && value == "":
		// the default
	case corresponds && readable:
		r.add(Linux, string(id), string(v))
	case corresponds && value == "max": // what the NIC has
		r.add(Linux, string(id), value)
	case corresponds:
		r.unread()
	case strings.Contains(name, "Coalesce") || strings.Contains(name, "Offload") || strings.HasSuffix(name, "Bytes") ||
		name == "BitsPerSecond" || name == "Duplex" || name == "AutoNegotiation" || name == "Advertise":
		r.unread()
	}
	return true
}

// A rule of udev(7) begins with what it asks for. ofNetwork is one for network interfaces, and
// ruleAttribute what it writes into the directory of one.
var (
	ruleHead      = pattern.New(`^(?:ACTION|SUBSYSTEMS?|KERNELS?|DRIVERS?|ATTRS?\{[^}]*\}|ENV\{\w+\})[=!]="`)
	ofNetwork     = pattern.New(`\bSUBSYSTEM=="net"|\bKERNEL=="(?:eth|en|wl)`)
	ruleAttribute = pattern.New(`\bATTR\{([\w/-]+)\}\s*=\s*"([^"]+)"`)
)

// deviceRule reads the attributes that a rule of udev sets. Its programs are read as strings.
func (r *reader) deviceRule(text string) bool {
	if !ruleHead.MatchString(text) {
		return false
	}
	if ofNetwork.MatchString(text) {
		for _, m := range ruleAttribute.FindAllStringSubmatch(text, -1) {
			r.written(m[2], "/sys/class/net/*/"+m[1])
		}
	}
	r.quoted(text)
	return true
}

// rcSwitches are switches of FreeBSD's rc.conf(5), and the sysctls that they set at boot.
var rcSwitches = table(`gateway_enable=net.inet.ip.forwarding ipv6_gateway_enable=net.inet6.ip6.forwarding
	icmp_drop_redirect=net.inet.icmp.drop_redirect icmp_bmcastecho=net.inet.icmp.bmcastecho
	tcp_extensions=net.inet.tcp.rfc1323 tcp_keepalive=net.inet.tcp.always_keepalive
	tcp_drop_synfin=net.inet.tcp.drop_synfin`)

// rcOthers are variables of rc.conf that name, address and start something.
var rcOthers = pattern.New(`^(?:hostname|defaultrouter|ipv6_defaultrouter|cloned_interfaces|` +
	`wlans_\w+|vlans_\w+|` +
	`create_args_\w+|static_routes|route_\w+|kld_list|keymap|\w+_enable|\w+_flags|jail_\w+|dumpdev|zfs_\w+)$`)

// rcVariable reads a variable of rc.conf other than those of interfaces.
func (r *reader) rcVariable(name, value string) bool {
	name = strings.TrimSuffix(name, "+") // sysrc kld_list+=tcp_rack
	sysctl := rcSwitches[name]
	if sysctl == "" || value == "" {
		return rcOthers.MatchString(name)
	}
	return r.sysctl(sysctl, boolean(value))
}

// disciplines are the sections of systemd.network(5) for a queueing discipline, with the word of
// tc(8). Those of classes and of shapers have no root of this kind.
var disciplines = table(`FairQueueing=fq FairQueueingControlledDelay=fq_codel CAKE=cake ControlledDelay=codel PFIFO=pfifo
	BFIFO=bfifo PFIFOFast=pfifo_fast PIE=pie FlowQueuePIE=fq_pie StochasticFairnessQueueing=sfq
	NetworkEmulator=netem TokenBucketFilter=tbf HierarchyTokenBucket=htb`)

// Options of NixOS for an interface: the sections of systemd.link as sets, and its MTU.
var (
	nixSection = pattern.New(`^(?:[\w."-]+\.)?(match|link|network)Config(?:\.(\w+))?\s*=\s*(.*)$`)
	nixEntry   = pattern.New(`([A-Z]\w+)\s*=\s*("[^"]*"|\w+)\s*;`)
	nixMTU     = pattern.New(`\b(?:interfaces\.)?(?:"([^"]+)"|([\w-]+))(?:\.|\s*=\s*\{\s*)mtu\s*=\s*(\d+);`)
	nixModules = pattern.New(`^boot\.extraModprobeConfig\s*=\s*"(.*?)(?:\\n)?";`)
)

// nixLink reads an option of NixOS for an interface.
func (r *reader) nixLink(text string) bool {
	if m := nixMTU.FindStringSubmatch(text); m != nil {
		r.add(Linux, "link:"+m[1]+m[2]+"/mtu", m[3])
		return true
	}
	if m := nixModules.FindStringSubmatch(text); m != nil {
		return r.moduleOptions(m[1])
	}
	m := nixSection.FindStringSubmatch(text)
	if m == nil {
		if r.nix && strings.HasPrefix(text, "}") {
			r.section, r.nix = "", false
		}
		if !r.nix {
			return false
		}
		m = []string{"", "", "", text}
	}
	if m[1] != "" {
		r.section, r.nix = strings.ToUpper(m[1][:1])+m[1][1:], !strings.HasSuffix(m[3], ";")
	}
	if m[2] != "" {
		m[3] = m[2] + " = " + m[3]
	}
	for _, e := range nixEntry.FindAllStringSubmatch(m[3], -1) {
		r.linkOption(e[1], strings.NewReplacer(`"`, "", "true", "yes", "false", "no").Replace(e[2]))
	}
	if !r.nix {
		r.section = ""
	}
	return true
}

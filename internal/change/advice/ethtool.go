package advice

import "strings"

// ethtoolSections maps the options of ethtool(8) to the part of the NIC that they set, as ethtool
// knobs are named.
var ethtoolSections = table(`-K=feature. --features=feature. --offload=feature. -G=ring. --set-ring=ring. -C=coalesce.
	--coalesce=coalesce. -L=channels. --set-channels=channels. -A=pause. --pause=pause. --set-eee=`)

// ethtoolFeatures are the words of ethtool(8) for features that package knob does not spell out,
// with the names of their bits. The long ones are those that `ethtool -k` prints, which pages copy.
//
// Source: off_flag_def in ethtool.c of the program; net/ethtool/common.c for the names of the bits.
var ethtoolFeatures = table(`rxvlan=rx-vlan-hw-parse rx-vlan-offload=rx-vlan-hw-parse txvlan=tx-vlan-hw-insert
	tx-vlan-offload=tx-vlan-hw-insert ntuple=rx-ntuple-filter ntuple-filters=rx-ntuple-filter
	rxhash=rx-hashing receive-hashing=rx-hashing rx-checksumming=rx-checksum
	tx-checksumming=tx-checksum-ip-generic scatter-gather=tx-scatter-gather
	tcp-segmentation-offload=tx-tcp-segmentation generic-segmentation-offload=tx-generic-segmentation
	generic-receive-offload=rx-gro large-receive-offload=rx-lro udp-fragmentation-offload=ufo`)

// ethtoolUnread are options for settings without facts here. Their lines are reported as not
// judged: a setting that is skipped silently would look correct.
var ethtoolUnread = setOf(`-X --rxfh --set-rxfh-indir -N -U --config-nfc --config-ntuple --set-fec --set-tunable
	--set-phy-tunable -Q --per-queue`)

// steering reads how flows come to queues, and the other options whose settings are not plain
// pairs; false for forms that are not read, like single flow rules and keys.
func (r *reader) steering(option, device string, rest []string) bool {
	// -N, -U and their long names are one option: they came with flow rules of two kinds, and take
	// the words of both today.
	name, value := "", strings.Join(rest, " ")
	switch option {
	case "-X", "--rxfh", "--set-rxfh-indir":
		if len(rest) > 0 && (rest[0] == "equal" || rest[0] == "weight" || rest[0] == "default") {
			name = "rss.indirection"
		}
	case "-N", "-U", "--config-nfc", "--config-ntuple":
		if len(rest) == 3 && rest[0] == "rx-flow-hash" {
			name, value = "rxhash."+rest[1], rest[2]
		}
	case "--set-fec":
		if len(rest) > 1 && rest[0] == "encoding" {
			name, value = "fec", strings.Join(rest[1:], ",") // ethtool(8) takes several, and the kernel a set
		}
	case "--set-tunable":
		if len(rest) == 2 {
			name, value = "tunable."+rest[0], rest[1]
		}
	}
	if name == "" {
		return false
	}
	r.add(Linux, "ethtool:"+device+"/"+name, value)
	return true
}

// ethtool reads the options that set something. Reading options are of its form and set nothing.
//
// Several settings in one command are several settings here, since each has a verdict of its own.
func (r *reader) ethtool(c command) bool {
	if len(c.words) < 3 {
		return len(c.words) > 0
	}
	// ethtool(8) takes one option, followed by the device; only options such as --json, which set
	// nothing, may come before.
	option, device, rest := c.words[1], c.words[2], c.words[3:]
	if section, ok := ethtoolSections[option]; ok {
		if len(rest) == 1 {
			r.unread() // a variable that holds names and values
		}
		pairs(rest, func(name, value string) {
			name = strings.ToLower(name)
			if full, ok := ethtoolFeatures[name]; ok && section == "feature." {
				name = full
			}
			r.add(Linux, "ethtool:"+device+"/"+section+name, value)
		})
		return true
	}
	switch {
	case option == "-s" || option == "--change":
		r.linkModes(device, rest)
	case option == "--set-priv-flags":
		// The driver's own names, in its own case.
		pairs(rest, func(name, value string) { r.add(Linux, "ethtool:"+device+"/flag."+name, value) })
	case ethtoolUnread[option] && !r.steering(option, device, rest):
		r.unread()
	}
	return true
}

// linkModes reads the words of ethtool -s. Speed, duplex and autonegotiation are one setting,
// because the effect of each depends on the others: link.forced when autonegotiation is off,
// otherwise link.advertised.
func (r *reader) linkModes(device string, words []string) {
	// The kernel has one message for all of them (ETHTOOL_MSG_LINKMODES_SET). Attributes that are
	// not named keep their present values, which the text does not contain. "speed 100" alone
	// therefore counts as negotiated, the default of NICs.
	var speed, duplex, autoneg string
	pairs(words, func(name, value string) {
		switch strings.ToLower(name) {
		case "speed":
			speed = value
		case "duplex":
			duplex = strings.ToLower(value)
		case "autoneg":
			autoneg = strings.ToLower(value)
		case "advertise":
			r.add(Linux, "ethtool:"+device+"/link.advertised", value)
		}
	})
	if speed == "" && duplex == "" && autoneg == "" {
		return
	}
	value := strings.Trim(speed+"/"+duplex, "/")
	if autoneg == "off" {
		r.add(Linux, "ethtool:"+device+"/link.forced", value)
	} else {
		r.add(Linux, "ethtool:"+device+"/link.advertised", strings.TrimSpace(value+" autonegotiation"))
	}
}

package advice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Entries of YAML about one interface: the module nmcli of Ansible, the network role of Linux
// system roles, nmstate, the first form of cloud-init, and Talos. Their keys may have any order, so
// that the name of the interface is looked for around the option:
//
//	- community.general.nmcli:
//	    conn_name: eth0
//	    mtu: 9000

var (
	entryLine   = pattern.New(`^(?:-\s+)?([a-z][\w-]*):\s*(.*?)(?:\s+#.*)?$`)
	flatNmcli   = pattern.New(`^(?:-\s+)?(?:community\.general\.)?nmcli:\s+(\S.*=.*)$`)
	nmcliWord   = pattern.New(`\b(\w+)=("[^"]*"|'[^']*'|\S+)`)
	plainNumber = pattern.New(`^\d+$`)
)

// ofInterface are keys that only an entry about an interface has beside its name.
var ofInterface = setOf(`type state persistent_state interface_name mac mac_address ipv4 ip ethernet autoconnect
	addresses dhcp subnets`)

// interfaceEntries writes the options of such entries as commands.
func interfaceEntries(text string, lines []line) []line {
	if !strings.Contains(text, "mtu") && !strings.Contains(text, "ethtool:") || netplanHead.MatchString(text) {
		return lines
	}
	out := slices.Clone(lines)
	for i, l := range lines {
		if m := flatNmcli.FindStringSubmatch(l.text); m != nil {
			words := map[string]string{}
			for _, w := range nmcliWord.FindAllStringSubmatch(m[1], -1) {
				words[w[1]] = strings.Trim(w[2], `"'`)
			}
			if words["mtu"] != "" {
				out[i].text = "ip link set dev " + deviceWord(cmp.Or(words["ifname"], words["conn_name"])) + " mtu " + words["mtu"]
			}
			continue
		}
		m := entryLine.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		value := strings.Trim(m[2], `"'`)
		switch {
		case m[1] == "mtu" && plainNumber.MatchString(value):
			if device := deviceOf(lines, i); device != "" {
				out[i].text = "ip link set dev " + device + " mtu " + value
			}
		case m[1] == "ethtool" && value == "":
			if device := deviceOf(lines, i); device != "" {
				ethtoolEntry(lines, out, i, device)
			}
		}
	}
	return out
}

// column is where the key of a line of YAML begins, behind the mark of an item.
func (l line) column() int {
	rest := strings.TrimLeft(strings.TrimPrefix(l.text, "- "), " ")
	return l.indent + len(l.text) - len(rest)
}

// deviceOf returns the interface of the entry that a line is in, or nothing.
func deviceOf(lines []line, at int) string {
	const reach = 40 // lines of an entry, on both sides
	column := lines[at].column()
	keys := map[string]string{}
	keep := func(l line) {
		if m := entryLine.FindStringSubmatch(l.text); m != nil && l.column() == column {
			keys[m[1]] = strings.Trim(m[2], `"'`)
		}
	}
	for i := at; i >= 0 && i > at-reach; i-- {
		if l := lines[i]; l.text != "" && l.column() < column {
			break
		}
		keep(lines[i])
		if lines[i].column() == column && strings.HasPrefix(lines[i].text, "- ") {
			break // the first key of the entry
		}
	}
	for i := at + 1; i < len(lines) && i < at+reach; i++ {
		if l := lines[i]; l.text != "" && l.indent < column {
			break
		}
		keep(lines[i])
	}
	name := cmp.Or(keys["ifname"], keys["interface_name"], keys["conn_name"], keys["interface"], keys["device_name"])
	if name == "" && keys["name"] != "" {
		for k := range keys {
			if ofInterface[k] {
				name = keys["name"]
			}
		}
	}
	if name == "" {
		return ""
	}
	return deviceWord(name)
}

// deviceWord is an interface as a word of a command; a star for one that the text leaves open.
func deviceWord(name string) string {
	if name == "" || strings.ContainsAny(name, " {}$<>%") {
		return "*"
	}
	return name
}

// ethtoolEntry writes the groups below an entry "ethtool".
func ethtoolEntry(lines, out []line, at int, device string) {
	option := ""
	for i := at + 1; i < len(lines) && lines[i].indent > lines[at].indent; i++ {
		m := entryLine.FindStringSubmatch(lines[i].text)
		switch {
		case m == nil:
		case m[2] == "" && ethtoolGroups[m[1]] != "":
			option = ethtoolGroups[m[1]]
		case option != "" && m[2] != "":
			name := strings.ReplaceAll(m[1], "_", "-")
			out[i].text = "ethtool " + option + " " + device + " " + name + " " +
				ethtoolValue(option, name, strings.Trim(m[2], `"'`))
		}
	}
}

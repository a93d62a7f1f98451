package plan

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/persist"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// reachLinux fills in how a setting of Linux is set and undone.
func (m *maker) reachLinux(l *Line) {
	id, err := knob.ParseID(l.Knob)
	if err != nil {
		return // a name of ours
	}
	was := knob.Value(cmp.Or(l.Present, l.Default))
	if l.about && l.Present == "" {
		was = ""
	}
	d, _ := knob.Catalogue().Lookup(id)
	l.Effect, l.Undoing = AtOnce, knob.UndoOf(id, d.Effect, d.Disturbance)
	switch {
	case d.Disturbance == knob.DisturbsHost:
		l.Effect = AtReboot
	case d.Disturbance >= knob.DisturbsBriefLoss:
		l.Effect = LinkDown
	case d.Effect == knob.EffectNewSockets:
		l.Effect = NewConnections
	}
	if id.Kind() == knob.KindSysctl {
		set := func(v knob.Value) string { return "sysctl -w " + id.Attribute() + "=" + quoted(string(v)) }
		l.Read, l.Commands = "sysctl "+id.Attribute(), []string{set(knob.Value(l.Value))}
		l.Undo = []string{set(was)}
		if was == "" {
			l.Undo, l.UndoNote = []string{"sysctl -w " + id.Attribute() + "=" + before(id.Attribute())}, noteBefore
		}
	} else {
		set := func(v knob.Value) []string {
			words, _ := persist.Command(id, v)
			return []string{strings.Join(words, " ")}
		}
		l.Commands = set(knob.Value(l.Value))
		l.Read = readDevice(id)
		l.Undo = set(was)
		if was == "" {
			words, _ := persist.Command(id, "0")
			words[len(words)-1] = before(id.Attribute())
			l.Undo, l.UndoNote = []string{strings.Join(words, " ")}, noteBefore
		}
	}
	step := m.persistence().Plan(journal.Change{ID: m.changeID(id), Knob: id, From: was, To: knob.Value(l.Value)})
	for _, f := range step.Files {
		l.Files = append(l.Files, File{Path: f.Path, Text: f.Content, Own: true, Mode: mode(uint32(f.Mode))})
	}
	if step.Format == persist.ByHand {
		l.ByHand = step.Line
		if m.System.manner == busybox && id.Attribute() == "mtu" {
			l.ByHand = "mtu " + l.Value + ", in the stanza of " + id.Interface() + " in /etc/network/interfaces"
		}
	}
	for _, n := range step.Notes {
		m.note(capital(n) + ".")
	}
	if step.Format == persist.Link {
		m.note("The .link file repeats the settings of 99-default.link. If `udevadm info /sys/class/net/" + id.Interface() +
			"` shows another ID_NET_LINK_FILE, put the lines of the drop-in into DIRECTORY/NAME.link.d of that file instead.")
	}
}

// changeID names the files of a line. All sysctls share one.
func (m *maker) changeID(id knob.ID) string {
	if id.Kind() == knob.KindSysctl {
		return "plan"
	}
	return "plan-" + strings.NewReplacer(".", "-", "_", "-").Replace(id.Attribute())
}

// readDevice returns the command that shows a setting of an interface.
func readDevice(id knob.ID) string {
	nic := quoted(id.Interface())
	switch group, _, _ := strings.Cut(id.Attribute(), "."); group {
	case "ring":
		return "ethtool -g " + nic
	case "coalesce":
		return "ethtool -c " + nic
	}
	return "ip link show dev " + nic
}

// persistence plans the files of a host that has what the distribution brings.
func (m *maker) persistence() *persist.Planner {
	if m.files != nil {
		return m.files
	}
	nic := m.nic()
	names, managers := "usr/sbin/ethtool usr/sbin/ip usr/sbin/tc", []string(nil)
	switch m.System.manner {
	case ifupdown:
		names += " sbin/ifup usr/lib/systemd/systemd-udevd"
	case busybox:
		names += " sbin/ifup"
	case networkManager:
		names += " usr/sbin/NetworkManager usr/lib/systemd/systemd-udevd"
		managers = []string{"NetworkManager"}
	default:
		names += " usr/lib/systemd/systemd-udevd"
	}
	if m.System.systemd > 0 {
		names += " usr/lib/systemd/libsystemd-shared-" + strconv.Itoa(m.System.systemd) + ".so"
	}
	// The file of every systemd since 247, and an interface that ifupdown brings up if it is there.
	entries := []hostfs.Entry{
		{Name: "etc/network/interfaces", Content: []byte("iface " + nic + " inet dhcp\n")},
		{Name: "usr/lib/systemd/network/99-default.link", Content: []byte("[Match]\nOriginalName=*\n\n[Link]\n" +
			"NamePolicy=keep kernel database onboard slot path\nAlternativeNamesPolicy=database onboard slot path\n" +
			"MACAddressPolicy=persistent\n")}}
	for _, name := range strings.Fields(names) {
		entries = append(entries, hostfs.Entry{Name: name})
	}
	m.files = persist.New(persist.Host{
		Root: hostfs.NewMemory(entries), Managers: managers,
		Device: func(name string) bootconf.Device { return bootconf.Device{Name: name} },
		Header: func(journal.Change) string { return "" },
	})
	return m.files
}

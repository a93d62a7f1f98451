package persist

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// linkSince is the first systemd whose .link files this package writes: from then on they surely
// have drop-ins.
const linkSince = 247

// device plans for a setting of an interface.
func (p *Planner) device(s *Step, d bootconf.Device) {
	id, v := s.Change.Knob, s.Change.To
	if p.host.Hidden && !slices.Contains(p.host.Managers, "NetworkManager") {
		s.Notes = append(s.Notes, "linerate cannot see what manages "+d.Name+", because /proc hides the processes of "+
			"this host: if NetworkManager does, set it in its connection instead")
	}
	managed := slices.Contains(p.host.Managers, "NetworkManager") && !bootconf.NetworkManagerSpares(p.host.Root, d.Name)
	if id.Kind() == knob.KindLink && id.Attribute() == "mtu" && managed {
		p.connectionDefault(s, d)
		return
	}
	if key, ok := bootconf.LinkKeyOf(id); ok && p.systemd() >= max(key.Since, linkSince) {
		if text, ok := key.Text(v); ok && p.link(s, d, key.Name+"="+text+"\n") {
			return
		}
	}
	if file, ok := attributeFile(id); ok {
		p.rule(s, fmt.Sprintf("ACTION==\"add\", SUBSYSTEM==\"net\", %s, ATTR{%s}=%q\n", deviceRule(d), file, string(v)))
		return
	}
	command, ok := Command(id, v)
	if !ok {
		s.Line = byHand(id, v)
		if id.Kind() == knob.KindQdisc {
			s.Line = fmt.Sprintf(
				"the parameter %s of the discipline at the root of %s: [%s] of a .network file, tc.qdiscs of a "+
					"NetworkManager connection, or `tc qdisc change` in ifup",
				id.Attribute(), d.Name, "FairQueueing, CAKE, …")
		}
		return
	}
	program := ""
	for _, dir := range []string{"usr/sbin/", "sbin/", "usr/bin/", "bin/"} {
		if program == "" && p.exists(dir+command[0]) {
			program = "/" + dir + command[0]
		}
	}
	line := strings.Join(append([]string{program}, command[1:]...), " ")
	switch {
	case program == "":
		s.Line = fmt.Sprintf("`%s` when the interface comes up; %s is not installed on this host",
			strings.Join(command, " "), command[0])
	case bootconf.Ifupdown(p.host.Root, d.Name) && !managed:
		p.script(s, Ifupdown, "/etc/network/if-up.d/linerate-"+s.Change.ID, `[ "$IFACE" = `+quote(d.Name)+
			" ] || exit 0\nexec "+line+"\n")
	case managed:
		p.script(s, NetworkManager, "/etc/NetworkManager/dispatcher.d/90-linerate-"+s.Change.ID,
			`[ "$1" = `+quote(d.Name)+` ] && [ "$2" = up ] || exit 0`+"\nexec "+line+"\n")
	default:
		run := strings.Replace(line, " "+d.Name+" ", " $name ", 1)
		if strings.ContainsAny(line, `"\$%`) {
			s.Line = fmt.Sprintf("`%s` when the interface comes up", line)
			return
		}
		p.rule(s, fmt.Sprintf("ACTION==\"add\", SUBSYSTEM==\"net\", %s, RUN+=\"%s\"\n", deviceRule(d), run))
	}
}

// script makes a step of one program that the owner of an interface runs when it comes up.
func (p *Planner) script(s *Step, format Format, name, body string) {
	s.Format = format
	s.Files = []journal.File{{Path: name, Content: "#!/bin/sh\n" + s.header + body, Mode: 0o755}}
}

// connectionDefault plans for NetworkManager, which sets the MTU of its interfaces at every
// activation. The section is named after the interface and not after the change: of several
// sections with the setting only one counts, while one section may appear in several files.
func (p *Planner) connectionDefault(s *Step, d bootconf.Device) {
	s.only(NetworkManager, "/etc/NetworkManager/conf.d/90-linerate-"+s.Change.ID+".conf",
		fmt.Sprintf("[connection-linerate-%s]\nmatch-device=interface-name:%s\nethernet.mtu=%s\n", d.Name, d.Name,
			s.Change.To))
}

// link plans a drop-in of the .link file that applies to a card. False: it cannot be said that way.
func (p *Planner) link(s *Step, d bootconf.Device, setting string) bool {
	root := p.root()
	winner, found := bootconf.LinkOf(root, d)
	base := path.Base(winner.File)
	var shared []journal.File
	switch {
	case found && winner.Own && strings.Contains(base, "-linerate-"):
		// Ours, made for an earlier change: it stays for as long as one of them does.
		text, err := fs.ReadFile(root, strings.TrimPrefix(winner.File, "/"))
		if err != nil {
			return false
		}
		shared = append(shared, journal.File{Path: winner.File, Content: string(text), Mode: 0o644})
	case found && winner.Own:
		s.Notes = append(s.Notes, "added to "+winner.File+", which is the .link file of this interface")
	default:
		base = "60-linerate-" + d.Name + ".link"
		if found && path.Base(winner.File) < base {
			base = "00-linerate-" + d.Name + ".link"
			if path.Base(winner.File) < base {
				return false
			}
		}
		text := "# Made by linerate for its changes of " + d.Name +
			", and taken out with the last of them: only the first .link file that matches counts.\n"
		if found {
			text += "# The settings are those of " + winner.File + ", which applies to other interfaces as well.\n"
		}
		text += "[Match]\n" + matchOf(d) + "\n[Link]\n" + winner.Settings
		shared = append(shared, journal.File{Path: "/etc/systemd/network/" + base, Content: text, Mode: 0o644})
	}
	s.only(Link, "/etc/systemd/network/"+base+".d/90-linerate-"+s.Change.ID+".conf", "[Link]\n"+setting)
	s.Files = append(shared, s.Files...)
	for _, file := range winner.Doubtful {
		s.Notes = append(s.Notes, file+" comes first and may apply instead: its [Match] has conditions that linerate "+
			"cannot check here")
	}
	if p.exists("usr/sbin/update-initramfs", "usr/bin/dracut", "usr/bin/mkinitcpio") {
		s.Notes = append(s.Notes,
			"if the card's driver is loaded from the initial ramdisk, make that anew: update-initramfs -u, dracut -f or "+
				"mkinitcpio -P")
	}
	return true
}

// matchOf returns the [Match] line for an interface. A NIC is matched by its permanent address, a
// virtual interface by the name it was created with.
func matchOf(d bootconf.Device) string {
	switch {
	case d.Permanent != "":
		return "PermanentMACAddress=" + d.Permanent + "\n"
	case d.Path != "":
		return "Path=" + d.Path + "\n"
	case d.Driver != "" && d.Address != "":
		return "MACAddress=" + d.Address + "\nDriver=" + d.Driver + "\n"
	}
	return "OriginalName=" + d.Name + "\n"
}

// deviceRule names an interface for a udev rule. VLANs share the address of their NIC and have no
// driver of a bus above them.
func deviceRule(d bootconf.Device) string {
	switch {
	case d.Permanent != "":
		return fmt.Sprintf("DRIVERS==\"?*\", ATTR{address}==%q, ATTR{type}==\"1\"", d.Permanent)
	case d.Path != "":
		return fmt.Sprintf("ENV{ID_PATH}==%q", d.Path)
	case d.Driver != "" && d.Address != "":
		return fmt.Sprintf("DRIVERS==\"?*\", ATTR{address}==%q", d.Address)
	}
	return fmt.Sprintf("KERNEL==%q", d.Name)
}

// sharedLibrary is the name of systemd's own library, which holds its version.
var sharedLibrary = pattern.New(`^libsystemd-shared-(\d+)`)

// systemd returns the version of systemd-udevd; 0: not installed, or unknown.
func (p *Planner) systemd() int {
	if !p.exists("usr/lib/systemd/systemd-udevd", "lib/systemd/systemd-udevd") {
		return 0
	}
	for _, dir := range []string{"usr/lib/systemd", "lib/systemd", "usr/lib64/systemd", "usr/lib/*/systemd",
		"lib/*/systemd"} {
		files, _ := fs.Glob(p.host.Root, dir+"/libsystemd-shared-*") // the pattern is well formed
		for _, f := range files {
			if m := sharedLibrary.FindStringSubmatch(path.Base(f)); m != nil {
				version, err := strconv.Atoi(m[1])
				if err == nil {
					return version
				}
			}
		}
	}
	return 0
}

// attributeFile returns the file of a knob below the directory of its interface in sysfs, where
// that is the way to set it.
func attributeFile(id knob.ID) (string, bool) {
	attribute := id.Attribute()
	if id.Kind() == knob.KindQueue {
		_, queue, _ := strings.Cut(id.Subject(), "/")
		if limit, ok := strings.CutPrefix(attribute, "bql_"); ok {
			attribute = "byte_queue_limits/" + limit
		}
		return path.Join("queues", queue, attribute), true
	}
	file, ok := map[string]string{"txqueuelen": "tx_queue_len", "napi_defer_hard_irqs": "napi_defer_hard_irqs",
		"gro_flush_timeout": "gro_flush_timeout",
		"threaded":          "threaded", "mtu": "mtu"}[attribute]
	return file, ok && id.Kind() == knob.KindLink
}

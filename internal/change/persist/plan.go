package persist

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/nameserver"
)

// Format is how a change is written down.
type Format string

// The formats.
const (
	Sysctl         Format = "sysctl.d"
	Modprobe       Format = "modprobe.d"
	Link           Format = "systemd.link"
	Udev           Format = "udev"
	NetworkManager Format = "NetworkManager"
	Ifupdown       Format = "ifupdown"
	SysctlConf     Format = "sysctl.conf" // FreeBSD: a marked block
	RCConf         Format = "rc.conf"     // FreeBSD: a marked block
	StartScript    Format = "rc2.d"       // illumos and Solaris: a script that runs at every start
	ByHand         Format = "by hand"
)

// Step is what makes one change survive a reboot.
type Step struct {
	Change journal.Change
	Format Format
	Files  []journal.File
	// Line is for the user, where Format is ByHand: what to write, and where.
	Line string
	// Conflicts are lines of other files that win over Files at the next start.
	Conflicts []bootconf.Line
	// Notes are further conditions and steps for the user.
	Notes []string

	header string // begins every file
}

// Host is what a plan depends on.
type Host struct {
	// Root are the files of the host, or of the image that is written to.
	Root fs.FS
	// Device returns the persistent names of an interface; nil: those that sysfs below Root shows.
	Device func(name string) bootconf.Device
	// Managers are the programs that bring interfaces up, by the names of package owner.
	Managers []string
	// Hidden reports that further managers may run, because /proc hides the processes of this host.
	Hidden bool
	// Header returns the comments that begin the files of a change; nil: they name the change of the
	// journal and its undo.
	Header func(journal.Change) string
}

// Planner plans for one host, change after change: a later step knows the files of those before it.
type Planner struct {
	host  Host
	files map[string]journal.File // planned so far, by path below the root
	// blocks are planned so far for the ends of files that the host has, by path below the root.
	blocks map[string]string
}

// New makes a planner.
func New(h Host) *Planner {
	if h.Device == nil {
		h.Device = func(name string) bootconf.Device { return bootconf.FindDevice(h.Root, name) }
	}
	if h.Header == nil {
		h.Header = header
	}
	return &Planner{host: h, files: map[string]journal.File{}}
}

// patternCharacters have a meaning of their own in names of interfaces, to at least one of the
// programs that read the files: sysctl.d(5), udev(7), systemd.link(5), NetworkManager.conf(5). The
// kernel takes them in names (dev_valid_name), and so "a*" would be set on every interface with a
// name from a.
const patternCharacters = "*?[]{}|!,;%$\"'\\"

// Plan returns the step of one change. Changes of one knob are to be planned in the order in which
// they were made. A change that has a value which no file can hold is ByHand.
func (p *Planner) Plan(c journal.Change) Step {
	s := Step{Change: c, Format: ByHand, header: p.host.Header(c)}
	if strings.ContainsFunc(string(c.To), unicode.IsControl) {
		s.Line = "the value holds control characters, which no configuration file can"
		return s
	}
	if name := c.Knob.Interface(); strings.ContainsAny(name, patternCharacters) {
		s.Line = fmt.Sprintf("%s, by a script of your own: the files of sysctl, udev and systemd take %q for a pattern",
			c.Knob, name)
		return s
	}
	switch c.Knob.Kind() {
	case knob.KindSysctl:
		if p.freebsd() {
			p.block(&s, SysctlConf, "etc/sysctl.conf", c.Knob.Attribute()+"="+string(c.To)+"\n")
			break
		}
		p.sysctl(&s)
	case knob.KindIfconfig:
		p.ifconfig(&s)
	case knob.KindModule:
		p.module(&s)
	case knob.KindIpadm, knob.KindDladm:
		p.property(&s)
	case knob.KindLink, knob.KindEthtool, knob.KindQueue, knob.KindQdisc:
		p.device(&s, p.host.Device(c.Knob.Interface()))
	case knob.KindBlock, knob.KindPCI, knob.KindCPU:
		p.part(&s)
	default:
		s.Line = byHand(c.Knob, c.To)
	}
	if s.Format == ByHand {
		s.Files = nil
		return s
	}
	for _, f := range s.Files {
		if f.Block {
			return s // the last line of its file wins
		}
		p.files[strings.TrimPrefix(f.Path, "/")] = f
	}
	p.conflicts(&s)
	return s
}

// conflicts reads the configuration as it will be, and notes the line that wins over ours.
func (p *Planner) conflicts(s *Step) {
	id := s.Change.Knob
	var devices []bootconf.Device
	if name := id.Interface(); name != "" {
		devices = append(devices, p.host.Device(name))
	}
	line, ok := bootconf.Read(p.root(), devices...).Line(id)
	if !ok || slices.ContainsFunc(s.Files, func(f journal.File) bool { return f.Path == line.File }) {
		return
	}
	if d, known := knob.Catalogue().Lookup(id); known && d.Equal(line.Value, s.Change.To) {
		s.Notes = append(s.Notes, fmt.Sprintf("%s:%d sets the same value", line.File, line.Number))
		return
	}
	s.Conflicts = append(s.Conflicts, line)
}

// header begins every file of a change of the journal.
func header(c journal.Change) string {
	return fmt.Sprintf("# linerate change %s: %s = %s\n# `linerate undo %s` takes this file out again.\n", c.ID,
		c.Knob, c.To, c.ID)
}

// only makes a step of one file.
func (s *Step) only(format Format, name, text string) {
	s.Format = format
	s.Files = []journal.File{{Path: name, Content: s.header + text, Mode: 0o644}}
}

func (p *Planner) sysctl(s *Step) {
	id := s.Change.Knob
	// The slashes of a name with dots in its elements are kept: sysctl.d(5) reads both as they are
	// here.
	s.only(Sysctl, "/etc/sysctl.d/90-linerate-"+s.Change.ID+".conf", id.Attribute()+" = "+string(s.Change.To)+"\n")
	if path := id.Path(); len(path) > 1 && path[1] == "netfilter" {
		s.Notes = append(s.Notes,
			"it exists only while nf_conntrack is loaded: list that module in /etc/modules-load.d, so that it loads "+
				"before sysctl.d is read")
	}
}

func (p *Planner) module(s *Step) {
	id, c := s.Change.Knob, s.Change
	module, parameter := id.Subject(), id.Attribute()
	if c.To == knob.Absent {
		s.Line = fmt.Sprintf("no %s= in the options of %s in /etc/modprobe.d, and none on the kernel's command line",
			parameter, module)
		return
	}
	assignment := parameter + "=" + string(c.To)
	if strings.ContainsAny(string(c.To), " \"'\\#") {
		s.Line = fmt.Sprintf("options %s %s, in a file of /etc/modprobe.d, quoted as its driver wants it",
			module, assignment)
		return
	}
	if p.builtIn(module) {
		s.Line = fmt.Sprintf(
			"%s.%s, on the kernel's command line: the module is built in, so that no file of /etc/modprobe.d is read for it",
			module, assignment)
		return
	}
	s.only(Modprobe, "/etc/modprobe.d/90-linerate-"+c.ID+".conf", "options "+module+" "+assignment+"\n")
	if p.exists("usr/sbin/update-initramfs", "usr/bin/dracut", "usr/bin/mkinitcpio") {
		s.Notes = append(s.Notes,
			"if "+module+" is loaded from the initial ramdisk, make that anew: update-initramfs -u, dracut -f or mkinitcpio -P")
	}
}

// builtIn reports whether a module is part of some kernel of the host.
func (p *Planner) builtIn(module string) bool {
	for _, pattern := range []string{"usr/lib/modules/*/modules.builtin", "lib/modules/*/modules.builtin"} {
		lists, _ := fs.Glob(p.host.Root, pattern) // the pattern is well formed
		for _, list := range lists {
			text, err := fs.ReadFile(p.host.Root, list)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				name := strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko")
				if strings.ReplaceAll(name, "-", "_") == module {
					return true
				}
			}
		}
	}
	return false
}

// part plans for a disk, a device of the bus or a CPU.
func (p *Planner) part(s *Step) {
	id, c := s.Change.Knob, s.Change
	kernel := id.Subject()
	file := map[string]string{knob.KindPCI: "link/", knob.KindCPU: "cpufreq/"}[id.Kind()] + id.Attribute()
	switch {
	case id.Kind() == knob.KindBlock:
		file = knob.DiskFile(id.Attribute())
	case id.Attribute() == "dma_latency":
		s.Line = byHand(id, c.To)
		return
	case id.Attribute() == "resume_latency":
		file = "power/pm_qos_resume_latency_us"
	}
	if id.Kind() == knob.KindCPU {
		kernel = "cpu" + kernel
	}
	rule := fmt.Sprintf("ACTION==\"add|change\", SUBSYSTEM==%q, KERNEL==%q, ATTR{%s}=%q\n", id.Kind(), kernel, file,
		string(c.To))
	p.rule(s, rule)
	if id.Kind() == knob.KindBlock {
		s.Notes = append(s.Notes, "the rule goes by the name "+kernel+", which another disk may get at the next start")
	}
}

// rule makes a step of one udev rule, where there is udev.
func (p *Planner) rule(s *Step, rule string) {
	if !p.exists("usr/lib/systemd/systemd-udevd", "lib/systemd/systemd-udevd", "usr/bin/udevadm", "bin/udevadm",
		"sbin/udevadm", "usr/sbin/udevd", "sbin/udevd") {
		s.Line = strings.TrimSpace(rule) + ", as a udev rule; no udev was found on this host"
		return
	}
	if strings.ContainsAny(string(s.Change.To), `"\$%`) {
		s.Line = strings.TrimSpace(rule) + ", as a udev rule, quoted as udev(7) says"
		return
	}
	s.only(Udev, "/etc/udev/rules.d/90-linerate-"+s.Change.ID+".rules", rule)
}

// exists reports whether one of some files is on the host.
func (p *Planner) exists(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := fs.Stat(p.host.Root, name)
		return err == nil
	})
}

// byHand returns what the user must write where no format fits.
func byHand(id knob.ID, v knob.Value) string {
	switch id.Kind() {
	case knob.KindRoute:
		return fmt.Sprintf("the attribute %s %s of the route %s, where that route is configured: [Route] of a .network "+
			"file, ipv4.routes of a NetworkManager connection, or `ip route` in ifup", id.Attribute(), v, id.Subject())
	case knob.KindIRQ:
		return fmt.Sprintf("a boot unit that finds the interrupt again, because number %s is this boot's alone, and "+
			"IRQBALANCE_BANNED_INTERRUPTS or a policy script for irqbalance", id.Subject())
	case knob.KindNFS:
		return fmt.Sprintf("%s=%s among the options of %s in /etc/fstab", id.Attribute(), v, id.Subject())
	case knob.KindLoader, knob.KindDriver, knob.KindRegistry, knob.KindAdapter, knob.KindNetTCP:
		return "nothing: the setting is in its file or registry already, and a restart keeps it"
	case knob.KindIpadm:
		return fmt.Sprintf("`ipadm set-prop -p %s=%s %s`, without -t", id.Attribute(), v, id.Subject())
	case knob.KindDladm:
		return fmt.Sprintf("`dladm set-linkprop -p %s=%s %s`, without -t", id.Attribute(), v, id.Subject())
	case knob.KindFirewall:
		return "the rules as nft list ruleset prints them, in the file that the host loads at its start, " +
			"often /etc/nftables.conf"
	case knob.KindNamed, knob.KindUnbound, knob.KindKresd:
		if id.Attribute() == nameserver.Workers {
			return fmt.Sprintf("-n %s in OPTIONS of /etc/default/named, or in the unit of the service", v)
		}
		return fmt.Sprintf("nothing: %s has it already, and a restart keeps it", id.Subject())
	case knob.KindCPU:
		return fmt.Sprintf("force_latency=%s in a profile of TuneD, or a service that keeps /dev/cpu_dma_latency open",
			v)
	}
	return fmt.Sprintf("%s = %s has no persistent form that linerate knows", id, v)
}

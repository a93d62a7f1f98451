package persist

import (
	"io/fs"
	"strings"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/host/freebsd"
)

// freebsd reports whether the root is that of a FreeBSD system, which has no directory for files of
// ours: what is persisted there goes into marked blocks.
func (p *Planner) freebsd() bool { return p.exists("etc/defaults/rc.conf") }

// present returns a file of the host as it will be after the steps before this one.
func (p *Planner) present(name string) (text string, mode fs.FileMode, there bool) {
	b, err := fs.ReadFile(p.host.Root, name)
	if err != nil {
		return "", 0, false
	}
	mode = 0o644
	if info, err := fs.Stat(p.host.Root, name); err == nil {
		mode = info.Mode().Perm()
	}
	return string(b) + p.blocks[name], mode, true
}

// block makes a step of a marked block at the end of a file.
func (p *Planner) block(s *Step, format Format, name, lines string) {
	_, mode, there := p.present(name)
	if strings.ContainsAny(string(s.Change.To), "\"'\\`$#") || !there {
		s.Line = strings.TrimSpace(lines) + ", in /" + name
		return
	}
	f := journal.Marked("/"+name, s.Change.ID, lines, mode)
	s.Format, s.Files = format, []journal.File{f}
	if p.blocks == nil {
		p.blocks = make(map[string]string)
	}
	p.blocks[name] += f.Content
}

// ifconfig adds an option to the line of rc.conf that brings the interface up. Without such a line
// a new one would replace what rc would do by default.
func (p *Planner) ifconfig(s *Step) {
	const name = "etc/rc.conf"
	id, option := s.Change.Knob, s.Change.Knob.Attribute()
	switch {
	case option == "mtu":
		option += " " + string(s.Change.To)
	case s.Change.To == "off":
		option = "-" + option
	}
	variable := "ifconfig_" + strings.NewReplacer(".", "_", "-", "_", "/", "_", "+", "_").Replace(id.Subject())
	text, _, _ := p.present(name)
	if _, set := freebsd.Assigned(text, variable); !set {
		s.Line = option + ", among the options of " + variable + " in /" + name
		return
	}
	p.block(s, RCConf, name, variable+"=\"${"+variable+"} "+option+"\"\n")
}

package journal

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// Identity is the object of the host that a knob belonged to when it was written. Empty fields are
// not compared: missing knowledge is no reason to leave a tuned value in place.
//
// Equal identities are necessary but not sufficient; the comparison of values decides. The kernel
// reuses the inode number of a destroyed network namespace, so two namespaces of one boot may have
// the same name; a change of the first is then put back in the second only if the knob there holds
// exactly what the change wrote. Interface indexes are counted up per namespace, but a program that
// creates an interface may request a number (ip link add index N).
type Identity struct {
	// Namespace is the network namespace, as the kernel writes it: net:[4026531840]. It is empty
	// for knobs of the whole host.
	Namespace string `json:"namespace,omitempty"`
	Device    string `json:"device,omitempty"` // interface index; unlike a name it rarely moves to another interface
}

// differs reports whether two identities certainly denote different objects.
func (i Identity) differs(other Identity) bool {
	return i.elsewhere(other) || (i.Device != other.Device && i.Device != "" && other.Device != "")
}

// elsewhere reports whether two identities are certainly in different network namespaces.
func (i Identity) elsewhere(other Identity) bool {
	return i.Namespace != other.Namespace && i.Namespace != "" && other.Namespace != ""
}

// inNamespace reports whether each network namespace has its own knob of that name. Interrupts,
// modules, CPUs, PCI devices and disks belong to the host, wherever they are written from; so do
// the sysctls outside net.
func inNamespace(id knob.ID) bool {
	switch id.Kind() {
	case knob.KindLink, knob.KindEthtool, knob.KindQueue, knob.KindQdisc, knob.KindRoute, knob.KindFirewall:
		return true
	case knob.KindSysctl:
		path := id.Path()
		return len(path) > 0 && path[0] == "net"
	}
	return false
}

// onInterface returns the same knob of an interface with another name. A knob without an interface
// is returned unchanged.
func onInterface(id knob.ID, name string) knob.ID {
	old := id.Interface()
	if old == "" || old == name {
		return id
	}
	if path := slices.Clone(id.Path()); path != nil {
		path[3] = name // net.ipv4.conf.NAME.x and net.ipv4.neigh.NAME.x: see knob.ID.Interface
		return knob.SysctlID(path...)
	}
	kind, rest, _ := strings.Cut(string(id), ":")
	return knob.ID(kind + ":" + name + strings.TrimPrefix(rest, old))
}

// present returns the name of the knob of a change now: an interface may have been renamed since,
// but its index stays.
func (j *Journal) present(e *entry) knob.ID {
	if e.Identity.Device == "" {
		return e.Knob
	}
	if name := j.options.Locate(e.Identity); name != "" {
		return onInterface(e.Knob, name)
	}
	return e.Knob
}

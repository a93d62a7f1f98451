package journal

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// Identity tells which object of the host a knob belonged to when it was written. Empty fields are
// not compared: not to know is no reason to leave a tuned value standing.
//
// It is a necessary condition only, and the comparison of values has the last word. The kernel
// hands the inode number of a dead network namespace to the next one, so two namespaces of one boot
// may have the same name; a change of the first is then put back in the second only if the knob
// there holds exactly what the change wrote. Interface indexes are counted per namespace and go up,
// but whoever makes an interface may ask for a number (ip link add index N).
type Identity struct {
	// Namespace is the network namespace, as the kernel writes it: net:[4026531840]. Empty also for
	// what belongs to the whole host.
	Namespace string `json:"namespace,omitempty"`
	Device    string `json:"device,omitempty"` // interface index: a name goes to another interface easily, an index only on request
}

// differs tells whether two identities are for sure those of different objects.
func (i Identity) differs(other Identity) bool {
	return i.elsewhere(other) || (i.Device != other.Device && i.Device != "" && other.Device != "")
}

// elsewhere tells whether two identities are for sure in different network namespaces.
func (i Identity) elsewhere(other Identity) bool {
	return i.Namespace != other.Namespace && i.Namespace != "" && other.Namespace != ""
}

// inNamespace tells whether network namespaces have a knob each of that name. Interrupts, modules,
// processors, cards on the bus and disks belong to the host, from wherever they are written; so do
// the sysctls outside net.
func inNamespace(id knob.ID) bool {
	switch id.Kind() {
	case knob.KindLink, knob.KindEthtool, knob.KindQueue, knob.KindQdisc, knob.KindRoute:
		return true
	case knob.KindSysctl:
		path := id.Path()
		return len(path) > 0 && path[0] == "net"
	}
	return false
}

// onInterface gives the same knob of an interface with another name. A knob of no interface stays
// what it is.
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

// present is what a change is to be found under now: an interface may have got another name since,
// its index stays.
func (j *Journal) present(e *entry) knob.ID {
	if e.Identity.Device == "" {
		return e.Knob
	}
	if name := j.options.Locate(e.Identity); name != "" {
		return onInterface(e.Knob, name)
	}
	return e.Knob
}

package journal

import (
	"strings"

	"github.com/linerate/linerate/internal/knob"
)

// Identity tells which object of the host a knob belonged to when it was written. Empty fields are not compared: not to know is no
// reason to leave a tuned value standing.
//
// It is a necessary condition only, and the comparison of values has the last word. The kernel hands the inode number of a dead network
// namespace to the next one, so two namespaces of one boot may have the same name; a change of the first is then put back in the second only
// if the knob there holds exactly what the change wrote. Interface indexes are counted per namespace and go up, but whoever makes an
// interface may ask for a number (ip link add index N).
type Identity struct {
	Namespace string `json:"namespace,omitempty"` // network namespace, as the kernel writes it: net:[4026531840]
	Device    string `json:"device,omitempty"`    // interface index: a name goes to another interface easily, an index only on request
}

// differs tells whether two identities are for sure those of different objects.
func (i Identity) differs(other Identity) bool {
	return i.elsewhere(other) || (i.Device != other.Device && i.Device != "" && other.Device != "")
}

// elsewhere tells whether two identities are for sure in different network namespaces.
func (i Identity) elsewhere(other Identity) bool {
	return i.Namespace != other.Namespace && i.Namespace != "" && other.Namespace != ""
}

// device returns the interface name in a knob name, empty when there is none: eth0 in link:eth0/mtu.
func device(id knob.ID) string {
	kind, rest, ok := strings.Cut(string(id), ":")
	if !ok {
		return ""
	}
	switch kind {
	case "link", "ethtool", "queue", "qdisc":
		// The attribute is behind the last slash for all of them but queue, and an interface name holds no slash.
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	return ""
}

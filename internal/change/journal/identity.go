package journal

import (
	"errors"
	"fmt"
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
	// Address is the hardware address of the interface. Interfaces share addresses and change them,
	// so it only finds one that was moved to another namespace and back.
	Address string `json:"hardware_address,omitempty"`
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
// but its index stays, unless it was moved to another network namespace.
func (j *Journal) present(e *entry) knob.ID {
	if e.Identity.Device == "" {
		return e.Knob
	}
	for _, i := range []*Identity{e.Away, &e.Identity} {
		if i == nil {
			continue
		}
		if name := j.options.Locate(*i); name != "" {
			return onInterface(e.Knob, name)
		}
	}
	return e.Knob
}

// absent reports whether the interface of a change was seen in another network namespace and is not
// back.
func (j *Journal) absent(e *entry) bool {
	return e.Away != nil && j.options.Locate(*e.Away) == "" && j.options.Locate(e.Identity) == ""
}

// moves reports whether the value of a knob goes with its interface to another network namespace.
// The kernel ends sysctls, routes and queueing disciplines of an interface that leaves
// (dev_change_net_namespace).
func moves(id knob.ID) bool {
	switch id.Kind() {
	case knob.KindLink, knob.KindEthtool, knob.KindQueue:
		return true
	}
	return false
}

// left decides on a change whose interface is not here. It returns an error that matches ErrAway
// when another network namespace has it, with the value of the change; the change then stays open.
// A nil error means that the change is over; unseen is what the note adds.
func (j *Journal) left(e *entry) (unseen string, err error) {
	if e.BootID != j.options.BootID || e.Identity.Device == "" || !moves(e.Knob) {
		return "", nil
	}
	there, known := j.options.Elsewhere(e.Identity, e.Knob.Interface())
	switch {
	case there.Namespace == "" && known:
		return "", nil
	case there.Namespace == "":
		return ", unless it is in a network namespace that linerate may not look into", nil
	}
	away := awayError(there.Namespace)
	if e.Away != nil && *e.Away == there {
		return "", away
	}
	r := record{Kind: kindUndo, ID: e.ID, To: e.To, Note: "not taken back: " + away.Error(), Away: &there}
	if e.Phase == phaseApplied {
		r.Kind = kindApplied // its state stays: nothing has begun
	}
	return "", errors.Join(away, j.writeOrRemember(r))
}

// awayError is an interface that is in the named network namespace.
type awayError string

func (e awayError) Error() string {
	return fmt.Sprintf("%v %s and keeps the value; undo the change when the interface is back", ErrAway, string(e))
}

// Is makes it an ErrAway.
func (e awayError) Is(target error) bool { return target == ErrAway }

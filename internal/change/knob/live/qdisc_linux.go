package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/tc"
)

// qdiscKnobs are the queueing disciplines of interfaces: "root" is the kind of the one at the root,
// KIND.PARAMETER (fq.flow_limit) a parameter of it. Under mq a parameter applies to all
// children.
//
// # The kernel's own disciplines
//
// A link gets its first discipline from the kernel, with the handle 0, and the kernel changes no
// parameter of it: it must be made again, under a handle. An undo that only wrote the old value
// would leave a copy there. So a discipline that replaces the kernel's own gets one of two reserved
// handles. When a later write leaves only defaults in it, it is deleted; if the kernel then creates
// the same discipline, that one stays.
type qdiscKnobs struct {
	// mu serialises the changes: each of them reads a tree first, and two that found the kernel's
	// own would both put theirs in its place.
	mu sync.Mutex
}

// ownHandles mark disciplines that replace the kernel's own. The kernel numbers from 8000 upwards,
// users from 1, so other programs rarely use these. There are two, because the successor needs
// another handle than the one in use.
var ownHandles = [2]uint32{0x4c52 << 16, 0x4c53 << 16}

func isOwn(handle uint32) bool { return handle == ownHandles[0] || handle == ownHandles[1] }

// successor is the handle for what takes the place of a root, given all disciplines of the link:
// one of our two where the kernel's own stood at first, otherwise any that is free, so that the
// place of another program's is not taken for the kernel's.
func successor(nodes []nl.QdiscNode) uint32 {
	switch rootOf(nodes).Handle {
	case 0, ownHandles[1]:
		return ownHandles[0]
	case ownHandles[0]:
		return ownHandles[1]
	}
	return free(nodes)
}

// free returns a handle that no discipline of the link has. The kernel would choose one too, but
// would then change a discipline of the same kind rather than create one.
func free(nodes []nl.QdiscNode) uint32 {
	h := ownHandles[1]
	for taken := true; taken; {
		h += 1 << 16
		taken = slices.ContainsFunc(nodes, func(n nl.QdiscNode) bool { return n.Handle == h })
	}
	return h
}

// byKind are the disciplines that the kind alone describes well enough to create them again: nearly
// all hosts use the defaults of their parameters. A shaper without its rate or a tree without its
// classes would be a different thing under the same name.
var byKind = []string{"bfifo", "cake", "fq", "fq_codel", "mq", "noqueue", "pfifo", "pfifo_fast"}

func (*qdiscKnobs) read(name, attribute string) (knob.Value, error) {
	kind, parameter, isParameter := strings.Cut(attribute, ".")
	switch {
	case isParameter:
		return withClient(func(c *nl.Client) (knob.Value, error) { return readParameter(c, name, kind, parameter) })
	case attribute != "root":
		return "", fmt.Errorf("%w: qdisc attribute %s", knob.ErrNotSupported, attribute)
	}
	link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
	return knob.Value(link.Qdisc), err
}

func (k *qdiscKnobs) write(name, attribute string, v knob.Value) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.allowed(name, attribute, v, false); err != nil {
		return err
	}
	kind, parameter, isParameter := strings.Cut(attribute, ".")
	err := do(func(c *nl.Client) error {
		if isParameter {
			return writeParameter(c, name, kind, parameter, string(v))
		}
		return writeRoot(c, name, string(v))
	})
	// The link was there a moment ago and would have been ENODEV: this is the kind. The errno stays
	// out of the chain, in which it would read as a knob that is not there.
	if errors.Is(err, syscall.ENOENT) {
		return &knob.RangeError{Value: v, Allowed: "a discipline that the running kernel has or can load (" +
			err.Error() + ")"}
	}
	return err
}

func (k *qdiscKnobs) check(name, attribute string, v knob.Value) error {
	return k.allowed(name, attribute, v, true)
}

// allowed checks a write. One that is no undo begins something: it may not give up the queues of a
// NIC. Under mq every transmit queue has its own discipline and lock; any other root puts one lock
// in front of all of them.
func (k *qdiscKnobs) allowed(name, attribute string, v knob.Value, begins bool) error {
	now, err := k.read(name, attribute)
	if err != nil {
		return err
	}
	if kind, parameter, ok := strings.Cut(attribute, "."); ok {
		if _, err := tc.Change(kind, parameter, string(v)); err != nil {
			return refusedOption(kind, parameter, v, err)
		}
		return nil
	}
	if begins && now == "mq" && v != "mq" {
		return fmt.Errorf("%w: mq is the root, and each of its children carries a discipline for one queue: set "+
			"sysctl:net.core.default_qdisc, then write mq again", knob.ErrNotSupported)
	}
	return checkRoot(name, now, string(v))
}

// checkRoot refuses a change that the old kind alone could not undo.
func checkRoot(name string, now knob.Value, v string) error {
	switch {
	case !slices.Contains(byKind, v):
		return &knob.RangeError{Value: knob.Value(v), Allowed: "one of " + strings.Join(byKind, ", ")}
	case now == "noop":
		return fmt.Errorf("%w: the interface has never been up and has no discipline yet", knob.ErrNotSupported)
	case !slices.Contains(byKind, string(now)):
		return fmt.Errorf("%w: %s is the root, and its parameters would be lost", knob.ErrNotSupported, now)
	case string(now) == v:
		return nil
	}
	nodes, err := withClient(func(c *nl.Client) ([]nl.QdiscNode, error) { return c.QdiscTree(name) })
	if err != nil {
		return err
	}
	// An undo writes the kind and would restore the defaults: the user must reset these parameters
	// first, or keep the discipline.
	for _, n := range nodes {
		if n.Parent != nl.RootParent {
			continue
		}
		custom, err := tc.Custom(n.Kind, n.Options, tc.Link{}) // parameters that follow from the link are no loss
		if err != nil {
			return err
		}
		if len(custom) > 0 {
			return fmt.Errorf("%w: %s is the root discipline, and its parameters would be lost: %s", knob.ErrNotSupported,
				n.Kind, strings.Join(custom, ", "))
		}
	}
	return nil
}

// writeRoot makes a discipline with its defaults the root. It leaves an existing one of that kind,
// with its queue, except mq, which it makes again because its children follow a sysctl that may
// have changed.
func writeRoot(c *nl.Client, name, kind string) error {
	nodes, err := c.QdiscTree(name)
	if err != nil {
		return err
	}
	root := rootOf(nodes)
	if kind == "noqueue" && len(nodes) == 0 {
		return nil
	}
	if root.Kind == kind && kind != "mq" {
		return settle(c, name) // Does what an earlier write was kept from by the end of its process.
	}
	made := nl.QdiscNode{Kind: kind, Parent: nl.RootParent, Handle: successor(nodes)}
	if err := c.PutQdisc(name, made); err != nil {
		return err
	}
	if !isOwn(root.Handle) {
		return nil
	}
	return settle(c, name)
}

// rootOf returns the discipline at the root; a zero one means noqueue, which the kernel does not
// list.
func rootOf(nodes []nl.QdiscNode) nl.QdiscNode {
	for _, n := range nodes {
		if n.Parent == nl.RootParent {
			return n
		}
	}
	return nl.QdiscNode{Kind: "noqueue", Parent: nl.RootParent}
}

// settle gives the place back to the kernel if the kernel then creates the same discipline as the
// present one.
//
// The kernel does not report which discipline it would create, so settle lets it create one. If
// that differs (another default_qdisc meanwhile, an MTU from which a quantum follows), settle makes
// the previous one again, under a handle.
func settle(c *nl.Client, name string) error {
	before, err := c.QdiscTree(name)
	if err != nil {
		return err
	}
	if !isOwn(rootOf(before).Handle) {
		return nil
	}
	link, err := c.LinkByName(name)
	if err != nil {
		return err
	}
	for _, n := range before {
		custom, err := tc.Custom(n.Kind, n.Options, tc.Link{MTUBytes: link.MTU, TxQueueLen: link.TxQueueLen})
		if err != nil {
			return err
		}
		if len(custom) > 0 {
			return nil
		}
	}
	if err := c.DeleteRootQdisc(name); err != nil {
		return err
	}
	after, err := c.QdiscTree(name)
	if err != nil {
		return err
	}
	if alike(before, after) {
		return nil
	}
	return rebuild(c, name, before)
}

// alike compares kinds and options, in the order of the kernel's list. Handles differ, which is the
// purpose of it all.
func alike(a, b []nl.QdiscNode) bool {
	shown := func(nodes []nl.QdiscNode) []nl.QdiscNode {
		return slices.DeleteFunc(slices.Clone(nodes), func(n nl.QdiscNode) bool { return n.Kind == "noqueue" })
	}
	return slices.EqualFunc(shown(a), shown(b),
		func(x, y nl.QdiscNode) bool { return x.Kind == y.Kind && slices.Equal(x.Options, y.Options) })
}

// rebuild makes a root, and the children of mq, as they were.
func rebuild(c *nl.Client, name string, nodes []nl.QdiscNode) error {
	root := rootOf(nodes)
	now, err := c.QdiscTree(name)
	if err != nil {
		return err
	}
	again := nl.QdiscNode{Kind: root.Kind, Parent: nl.RootParent, Handle: successor(now)}
	if known(root.Kind) {
		if again.Options, err = tc.Whole(root.Kind, root.Options, "", ""); err != nil {
			return err
		}
	}
	if err := c.PutQdisc(name, again); err != nil {
		return err
	}
	for _, n := range leavesOf(nodes) {
		if n.Parent == nl.RootParent || !known(n.Kind) {
			continue
		}
		options, err := tc.Whole(n.Kind, n.Options, "", "")
		if err != nil {
			return err
		}
		if err := putChild(c, name, nl.QdiscNode{Kind: n.Kind, Parent: again.Handle | n.Parent&0xffff,
			Options: options}); err != nil {
			return err
		}
	}
	return nil
}

func known(kind string) bool { return slices.Contains(tc.Kinds(), kind) }

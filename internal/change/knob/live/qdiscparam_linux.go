package live

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/tc"
)

// leavesOf returns the disciplines that hold packets: the root, or the children of mq. Disciplines
// below any other root belong to a tree that was built by hand, and are not included.
func leavesOf(nodes []nl.QdiscNode) []nl.QdiscNode {
	root := rootOf(nodes)
	if root.Kind != "mq" {
		return []nl.QdiscNode{root}
	}
	var out []nl.QdiscNode
	for _, n := range nodes {
		if n.Parent != nl.RootParent && n.Parent&^0xffff == root.Handle {
			out = append(out, n)
		}
	}
	return out
}

// leaves are those of one link, all of the wanted kind.
//
// A parameter that the present discipline lacks is "not supported" rather than "does not exist":
// writing qdisc:X/root would make it appear.
func leaves(c *nl.Client, name, kind, parameter string) (root nl.QdiscNode, out []nl.QdiscNode, err error) {
	if len(tc.Parameters(kind)) == 0 {
		return root, nil, fmt.Errorf("%w: nothing is known of parameters of %s", knob.ErrNotSupported, kind)
	}
	nodes, err := c.QdiscTree(name)
	if err != nil {
		return root, nil, err
	}
	root = rootOf(nodes)
	out = leavesOf(nodes)
	for _, n := range out {
		if n.Kind != kind {
			return root, nil, fmt.Errorf("%w: the discipline is %s, which has no %s.%s", knob.ErrNotSupported, n.Kind,
				kind, parameter)
		}
	}
	if len(out) == 0 {
		return root, nil, fmt.Errorf("%w: mq has no children yet", knob.ErrNotSupported)
	}
	return root, out, nil
}

// readParameter returns the value that all queues have.
func readParameter(c *nl.Client, name, kind, parameter string) (knob.Value, error) {
	_, all, err := leaves(c, name, kind, parameter)
	if err != nil {
		return "", err
	}
	first := ""
	for i, n := range all {
		v, err := tc.Get(kind, parameter, n.Options)
		switch {
		case errors.Is(err, tc.ErrUnknown), errors.Is(err, tc.ErrAbsent):
			return "", fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
		case err != nil:
			return "", err
		case i == 0:
			first = v
		case v != first:
			return "", fmt.Errorf("%w: the queues differ: %s here, %s there", knob.ErrNotSupported, first, v)
		}
	}
	return knob.Value(first), nil
}

// refusedOption returns which values a parameter takes.
func refusedOption(kind, parameter string, v knob.Value, err error) error {
	switch {
	case errors.Is(err, tc.ErrUnknown):
		return fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
	case !errors.Is(err, tc.ErrValue):
		return err
	}
	allowed := "a value of " + kind + "." + parameter
	if words := tc.Words(kind, parameter); words != nil {
		allowed = "one of " + strings.Join(words, ", ")
	}
	return &knob.RangeError{Value: v, Allowed: allowed, Err: err}
}

// writeParameter sets a parameter of every queue, or of none: when one is refused those before it
// get back what they had.
func writeParameter(c *nl.Client, name, kind, parameter, v string) error {
	root, all, err := leaves(c, name, kind, parameter)
	if err != nil {
		return err
	}
	if now, err := readParameter(c, name, kind, parameter); err == nil && string(now) == v {
		return nil
	}
	own := root.Handle == 0
	if own && root.Kind == "mq" {
		// The children of a kernel's own mq have no handle to name them by.
		if err := standFor(c, name, kind); err != nil {
			return err
		}
		if _, all, err = leaves(c, name, kind, parameter); err != nil {
			return errors.Join(err, c.DeleteRootQdisc(name))
		}
	}
	for i, n := range all {
		err := setOption(c, name, n, parameter, v)
		if err == nil {
			continue
		}
		for _, earlier := range all[:i] {
			was, gerr := tc.Get(kind, parameter, earlier.Options)
			if gerr == nil {
				gerr = setAgain(c, name, earlier, parameter, was)
			}
			err = errors.Join(err, gerr)
		}
		if own && root.Kind == "mq" {
			err = errors.Join(err, c.DeleteRootQdisc(name))
		}
		return err
	}
	return settle(c, name)
}

// standFor replaces the kernel's own mq by one with a handle. net.core.default_qdisc determines its
// children, as it did before; if another program changed that meanwhile, the children would differ,
// and no undo could restore the old ones.
func standFor(c *nl.Client, name, kind string) error {
	if b, err := os.ReadFile("/proc/sys/net/core/default_qdisc"); err == nil && strings.TrimSpace(string(b)) != kind {
		return fmt.Errorf("%w: the queues carry %s, and net.core.default_qdisc would now make %s", knob.ErrNotSupported,
			kind, strings.TrimSpace(string(b)))
	}
	return c.PutQdisc(name, nl.QdiscNode{Kind: "mq", Parent: nl.RootParent, Handle: ownHandles[0]})
}

// setOption changes one in place where the kernel does that, and otherwise makes an equal one with
// the parameter changed.
func setOption(c *nl.Client, name string, n nl.QdiscNode, parameter, v string) error {
	var err error
	if n.Handle != 0 && !tc.Once(n.Kind, parameter) {
		if n.Options, err = tc.Change(n.Kind, parameter, v); err != nil {
			return refusedOption(n.Kind, parameter, knob.Value(v), err)
		}
		return c.ChangeQdisc(name, n)
	}
	if n.Options, err = tc.Whole(n.Kind, n.Options, parameter, v); err != nil {
		return refusedOption(n.Kind, parameter, knob.Value(v), err)
	}
	if n.Parent != nl.RootParent {
		return putChild(c, name, n)
	}
	nodes, err := c.QdiscTree(name)
	if err != nil {
		return err
	}
	n.Handle = successor(nodes)
	return c.PutQdisc(name, n)
}

// putChild makes the discipline of one queue.
func putChild(c *nl.Client, name string, n nl.QdiscNode) error {
	nodes, err := c.QdiscTree(name)
	if err != nil {
		return err
	}
	n.Handle = free(nodes)
	return c.PutQdisc(name, n)
}

// setAgain is setOption for what was just made in the place of n, under a handle that is not known
// here.
func setAgain(c *nl.Client, name string, n nl.QdiscNode, parameter, v string) error {
	nodes, err := c.QdiscTree(name)
	if err != nil {
		return err
	}
	for _, now := range nodes {
		if now.Parent == n.Parent {
			return setOption(c, name, now, parameter, v)
		}
	}
	return nil
}

package knob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/nl"
)

// qdiscKnobs are the queueing disciplines at the root of interfaces.
type qdiscKnobs struct{}

// byKind are the disciplines that a kind alone describes well enough to make them again: their parameters have defaults that nearly
// everybody uses. A shaper without its rate or a tree without its classes would be a different thing under the same name.
var byKind = []string{"fq", "fq_codel", "mq", "noqueue", "pfifo", "pfifo_fast"}

func (qdiscKnobs) read(name, attribute string) (Value, error) {
	if attribute != "root" {
		return "", fmt.Errorf("%w: qdisc attribute %s", ErrNotSupported, attribute)
	}
	link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
	return Value(link.Qdisc), err
}

func (k qdiscKnobs) write(name, attribute string, v Value) error {
	if err := k.check(name, attribute, v); err != nil {
		return err
	}
	err := do(func(c *nl.Client) error { return c.ReplaceQdisc(name, string(v)) })
	// The link was there a moment ago and would have been ENODEV: this is the kind. The errno stays out of the chain, in which it would
	// read as a knob that is not there.
	if errors.Is(err, syscall.ENOENT) {
		return &RangeError{Value: v, Allowed: "a discipline that the running kernel has or can load"}
	}
	return err
}

// check refuses what the old kind alone could not bring back, and what would give up the queues of a card.
//
// Under mq every transmit queue has a discipline, and a lock, of its own; anything else at the root puts one lock in front of all of them.
// The way to change those below is sysctl:net.core.default_qdisc, and then mq anew.
func (k qdiscKnobs) check(name, attribute string, v Value) error {
	now, err := k.read(name, attribute)
	switch {
	case err != nil:
		return err
	case !slices.Contains(byKind, string(v)):
		return &RangeError{Value: v, Allowed: "one of " + strings.Join(byKind, ", ")}
	case now == "mq" && v != "mq":
		return fmt.Errorf("%w: mq is the root, and each of its children carries a discipline for one queue: set "+
			"sysctl:net.core.default_qdisc, then write mq again", ErrNotSupported)
	case now == "noop":
		return fmt.Errorf("%w: the interface has never been up and has no discipline yet", ErrNotSupported)
	case !slices.Contains(byKind, string(now)):
		return fmt.Errorf("%w: %s is the root, and its parameters would be lost", ErrNotSupported, now)
	}
	return nil
}

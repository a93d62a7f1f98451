package live

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// linkKnobs are attributes of an interface that rtnetlink or sysfs carries.
type linkKnobs struct{ sysfs sysfs }

// inSysfs are the attributes that are files of the interface's directory, by the name of the file.
func inSysfs(attribute string) bool {
	return attribute == "napi_defer_hard_irqs" || attribute == "gro_flush_timeout" || attribute == "threaded"
}

// inLink are the attributes that rtnetlink carries.
func inLink(attribute string) bool {
	switch nl.SizeLimit(attribute) {
	case "mtu", "txqueuelen", nl.LimitGRO, nl.LimitGSO, nl.LimitGROIPv4, nl.LimitGSOIPv4:
		return true
	}
	return false
}

// An attribute that is not listed is "not supported", not "unknown": the name is well formed, and
// another version may have it.
func (k linkKnobs) read(name, attribute string) (knob.Value, error) {
	if inSysfs(attribute) {
		v, err := k.sysfs.readAttribute(name, attribute)
		return v, k.explain(name, attribute, err)
	}
	if !inLink(attribute) {
		return "", fmt.Errorf("%w: link attribute %s", knob.ErrNotSupported, attribute)
	}
	link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
	if err != nil {
		return "", err
	}
	switch attribute {
	case "mtu":
		return knob.Value(strconv.Itoa(link.MTU)), nil
	case "txqueuelen":
		return knob.Value(strconv.Itoa(link.TxQueueLen)), nil
	}
	if limit := link.SizeLimit(nl.SizeLimit(attribute)); limit != 0 {
		return knob.Value(strconv.Itoa(limit)), nil
	}
	return "", fmt.Errorf("%w: this kernel has no %s", knob.ErrNotSupported, attribute)
}

func (k linkKnobs) write(name, attribute string, v knob.Value) error {
	if inSysfs(attribute) {
		return k.explain(name, attribute, k.sysfs.writeAttribute(name, attribute, v))
	}
	if !inLink(attribute) {
		return fmt.Errorf("%w: link attribute %s", knob.ErrNotSupported, attribute)
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return &knob.RangeError{Value: v, Allowed: "an integer"}
	}
	return do(func(c *nl.Client) error {
		switch attribute {
		case "mtu":
			return c.SetMTU(name, n)
		case "txqueuelen":
			return c.SetTxQueueLen(name, n)
		}
		return c.SetSizeLimit(name, nl.SizeLimit(attribute), n)
	})
}

func (k linkKnobs) check(name, attribute string, _ knob.Value) error {
	if !inSysfs(attribute) {
		return nil
	}
	return k.explain(name, attribute, k.sysfs.checkAttribute(name, attribute))
}

// explain returns an interface that is not there from one whose kernel has no such file: threaded
// came with 5.12, the other two with 5.4.
func (k linkKnobs) explain(name, attribute string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dirErr := k.sysfs.hasDirectory(name, "."); dirErr != nil {
		return dirErr
	}
	return fmt.Errorf("%w: this kernel has no %s", knob.ErrNotSupported, attribute)
}

package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

func (k linkKnobs) check(name, attribute string, v knob.Value) error {
	if inSysfs(attribute) {
		return k.explain(name, attribute, k.sysfs.checkAttribute(name, attribute))
	}
	n, _ := strconv.Atoi(string(v)) // the form has been checked
	return do(func(c *nl.Client) error {
		link, err := c.LinkByName(name)
		if err != nil {
			return err
		}
		return lossless(&link, c.Links, attribute, n)
	})
}

const (
	minMTU6 = 1280 // the smallest MTU of IPv6, in bytes (RFC 8200 §5)
	// legacySize is the largest general limit that the kernel writes to the limit of IPv4 too
	// (GSO_LEGACY_MAX_SIZE), in bytes.
	legacySize = 65536
)

// lossless refuses a value with which the kernel changes more than the attribute, and does not
// change that back with it: an MTU takes away IPv6 with all its addresses (addrconf_notify) and
// lowers interfaces on top (vlan_device_event, macvlan_device_event).
//
// It asks for all interfaces only where some may follow. Otherwise the check of each of a thousand
// interfaces, as `knobs --current` makes them, would list a thousand.
func lossless(link *nl.Link, all func() ([]nl.Link, error), attribute string, n int) error {
	lost, general, ipv4 := "", 0, 0
	switch nl.SizeLimit(attribute) {
	case "mtu":
		if _, err := os.Stat("/proc/thread-self/net/if_inet6"); err == nil && n < minMTU6 && link.MTU >= minMTU6 {
			lost = "IPv6, which needs 1280 bytes"
		}
		var above []nl.Link
		if n < link.MTU {
			var err error
			if above, err = all(); err != nil {
				return err
			}
		}
		for i := range above {
			l := &above[i]
			if l.ParentIndex == link.Index && l.MTU > n && (l.Kind == "vlan" || l.Kind == "macvlan" || l.Kind == "macvtap") {
				lost = "the MTU of " + l.Name + ", which follows: set that first"
			}
		}
	case nl.LimitGRO:
		general, ipv4 = link.GROMaxBytes, link.GROIPv4MaxBytes
	case nl.LimitGSO:
		general, ipv4 = link.GSOMaxBytes, link.GSOIPv4MaxBytes
	}
	if general <= legacySize {
		n = general // undo writes it last
	}
	if ipv4 != 0 && n <= legacySize && n != ipv4 {
		lost = "the limit of IPv4, which follows: set that to " + strconv.Itoa(n) + " first"
	}
	if lost == "" {
		return nil
	}
	return fmt.Errorf("%w: an undo would not bring back %s", knob.ErrNotSupported, lost)
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

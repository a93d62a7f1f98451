package live

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// ethtoolKnobs are settings of a driver that the kernel's ethtool family carries: GROUP.NAME, or a
// word alone.
//
// If the driver of an interface lacks a setting, the error is ErrNotSupported; a name that no
// driver can have returns fs.ErrNotExist. Drivers round numbers: rings become powers of two,
// microseconds the steps of a timer. Write accepts any change; the caller must read the resulting
// value.
type ethtoolKnobs struct{}

// read requests the whole group of a knob, which is how the kernel answers, and picks its value.
// Numbers of one group that are read one after another may come from two moments.
func (ethtoolKnobs) read(name, attribute string) (knob.Value, error) {
	return withClient(func(client *nl.Client) (knob.Value, error) { return readEthtool(client, name, attribute) })
}

func readEthtool(client *nl.Client, name, attribute string) (knob.Value, error) {
	c := ethtool.New(client)
	group, key, _ := strings.Cut(attribute, ".")
	if k, ok := cardKnobs[group]; ok {
		return k.read(c, name, key)
	}
	switch {
	case group == "ring" && ringWord(key):
		return readRingWord(c, name, key)
	case group == "ring" || group == "channels" || group == "coalesce" && !coalesceSwitch(key):
		n, _, err := readNumber(c, name, group, key)
		return knob.Value(strconv.FormatUint(uint64(n), 10)), err
	case group == "coalesce":
		n, _, err := readNumber(c, name, group, key)
		return onOff(n != 0), err
	case group == "pause":
		p, err := c.Pause(name)
		if err != nil {
			return "", err
		}
		on, err := pauseBit(&p, key)
		if err != nil {
			return "", err
		}
		return onOff(*on), nil
	case attribute == "eee":
		e, err := c.EEE(name)
		return onOff(e.Enabled), err
	case group == "flag":
		flags, err := c.PrivateFlags(name)
		if err != nil {
			return "", err
		}
		on, ok := flags[key]
		if !ok {
			return "", fmt.Errorf("%w: the driver has no private flag %s", fs.ErrNotExist, key)
		}
		return onOff(on), nil
	case group == "feature":
		return readFeature(c, name, key)
	}
	return "", fmt.Errorf("%w: ethtool attribute %s", knob.ErrNotSupported, attribute)
}

// write leaves ranges to kernel and driver: an original outside of them must go back.
func (ethtoolKnobs) write(name, attribute string, v knob.Value) error {
	err := do(func(c *nl.Client) error { return writeEthtool(ethtool.New(c), name, attribute, v) })
	if errors.Is(err, syscall.EBUSY) {
		// Some settings change only while the interface is down, or while no program is attached to
		// its queues. The user decides whether to take it down.
		return fmt.Errorf("%w: not in the present state of the interface: %w", knob.ErrNotSupported, err)
	}
	return err
}

func (ethtoolKnobs) check(name, attribute string, v knob.Value) error {
	if attribute != "link.mode" {
		return nil
	}
	return checkMode(name, v)
}

func writeEthtool(c ethtool.Client, name, attribute string, v knob.Value) error {
	group, key, _ := strings.Cut(attribute, ".")
	if k, ok := cardKnobs[group]; ok {
		return k.write(c, name, key, v)
	}
	switch {
	case group == "ring" && ringWord(key):
		return writeRingWord(c, name, key, v)
	case group == "ring" || group == "channels" || group == "coalesce" && !coalesceSwitch(key):
		return writeNumber(c, name, group, key, v)
	case group == "coalesce":
		return writeSwitch(v, func(on bool) error {
			n := uint32(0)
			if on {
				n = 1
			}
			return c.SetCoalesce(name, key, n)
		})
	case group == "pause":
		return writeSwitch(v, func(on bool) error { return writePause(c, name, key, on) })
	case attribute == "eee":
		return writeSwitch(v, func(on bool) error { return c.SetEEE(name, on) })
	case group == "flag":
		return writeSwitch(v, func(on bool) error { return c.SetPrivateFlag(name, key, on) })
	case group == "feature":
		return writeSwitch(v, func(on bool) error { return c.SetFeature(name, key, on) })
	}
	return fmt.Errorf("%w: ethtool attribute %s", knob.ErrNotSupported, attribute)
}

// onOff is the canonical text of a switch.
func onOff(on bool) knob.Value {
	if on {
		return "on"
	}
	return "off"
}

// coalesceSwitch reports whether a moderation parameter is one of the four switches; all others are
// numbers.
func coalesceSwitch(key string) bool {
	return key == "adaptive-rx" || key == "adaptive-tx" || key == "cqe-mode-rx" || key == "cqe-mode-tx"
}

// readNumber returns the present value and, for rings and channels, the driver's maximum; 0 when
// the driver does not report one. With a maximum of 0, the kernel reports that the driver has no
// such ring or no channels of this kind.
func readNumber(c ethtool.Client, name, group, key string) (current, most uint32, err error) {
	type number struct{ current, most uint32 }
	var numbers map[string]number
	switch group {
	case "ring":
		rx, tx, rerr := c.Rings(name)
		numbers, err = map[string]number{"rx": {rx.Current, rx.Max}, "tx": {tx.Current, tx.Max}}, rerr
	case "channels":
		ch, cerr := c.Channels(name)
		numbers, err = map[string]number{
			"combined": {ch.Combined, ch.MaxCombined}, "rx": {ch.Rx, ch.MaxRx}, "tx": {ch.Tx, ch.MaxTx},
		}, cerr
	case "coalesce":
		return readCoalesce(c, name, key) // drivers report no maximum for these
	}
	n, ok := numbers[key]
	switch {
	case err != nil:
		return 0, 0, err
	case !ok:
		return 0, 0, fmt.Errorf("%w: no driver has a %s.%s", fs.ErrNotExist, group, key)
	case n.most == 0:
		return 0, 0, fmt.Errorf("%w: the driver has no %s.%s", knob.ErrNotSupported, group, key)
	}
	return n.current, n.most, nil
}

// readCoalesce distinguishes a parameter that another driver may have from one that the catalogue
// does not know: the kernel reports only the parameters of this driver.
func readCoalesce(c ethtool.Client, name, key string) (current, most uint32, err error) {
	parameters, err := c.Coalesce(name)
	if err != nil {
		return 0, 0, err
	}
	n, ok := parameters[key]
	if ok {
		return n, 0, nil
	}
	if _, known := knob.Catalogue().Lookup(knob.ID(knob.KindEthtool + ":" + name + "/coalesce." + key)); known {
		return 0, 0, fmt.Errorf("%w: the driver has no %s", knob.ErrNotSupported, key)
	}
	return 0, 0, fmt.Errorf("%w: no driver has a moderation parameter %s", fs.ErrNotExist, key)
}

// writeNumber returns the allowed values when the driver refuses.
func writeNumber(c ethtool.Client, name, group, key string, v knob.Value) error {
	n, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil {
		return &knob.RangeError{Value: v, Allowed: "an integer from 0 to 4294967295"}
	}
	switch group {
	case "ring":
		err = c.SetRing(name, key, uint32(n))
	case "channels":
		err = c.SetChannel(name, key, uint32(n))
	case "coalesce":
		err = c.SetCoalesce(name, key, uint32(n))
	}
	switch {
	case errors.Is(err, nl.ErrNotApplied):
		// The driver rounds to the value already set, usually its maximum.
		return &knob.RangeError{Value: v, Allowed: "a number that the driver does not round to the present one",
			Err: err}
	case errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ERANGE):
		// The catalogue's range is that of the kernel's family and would mislead here. Some drivers
		// report their maximum; they refuse a number below it for the reason in the kernel's
		// message: a filter or an XDP program needs the queues.
		allowed := "a number that this driver takes"
		if _, most, rerr := readNumber(c, name, group, key); rerr == nil && most > 0 {
			allowed = fmt.Sprintf("at most %d, the maximum of this driver", most)
			if n <= uint64(most) {
				allowed = fmt.Sprintf("a number up to %d that goes with the other settings", most)
			}
		}
		return &knob.RangeError{Value: v, Allowed: allowed, Err: err}
	}
	return err
}

// writeSwitch writes a switch. If a driver accepts a switch and ignores it, the error is "not
// supported", which is an answer and no reason to distrust the host.
func writeSwitch(v knob.Value, set func(on bool) error) error {
	word, err := knob.Definition{Form: knob.FormSwitch}.Normalize(v)
	if err != nil {
		return err
	}
	err = set(word == "on")
	if errors.Is(err, nl.ErrNotApplied) {
		return fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
	}
	return err
}

// pauseBit returns the member that a key names.
func pauseBit(p *ethtool.Pause, key string) (*bool, error) {
	switch key {
	case "rx":
		return &p.Rx, nil
	case "tx":
		return &p.Tx, nil
	case "autoneg":
		return &p.Autoneg, nil
	}
	return nil, fmt.Errorf("%w: pause has rx, tx and autoneg", fs.ErrNotExist)
}

// writePause changes one member. SetPause sends only the difference, so that the other two stay as
// they were set; their readings are the negotiated values.
func writePause(c ethtool.Client, name, key string, on bool) error {
	p, err := c.Pause(name)
	if err != nil {
		return err
	}
	bit, err := pauseBit(&p, key)
	if err != nil {
		return err
	}
	*bit = on
	return c.SetPause(name, p)
}

// readFeature returns the state in effect. A requested feature that waits for another one reads as
// off.
func readFeature(c ethtool.Client, link, feature string) (knob.Value, error) {
	features, err := c.Features(link)
	if err != nil {
		return "", err
	}
	return featureIn(features, feature)
}

func featureIn(features map[string]ethtool.Feature, feature string) (knob.Value, error) {
	f, ok := features[feature]
	if !ok {
		return "", fmt.Errorf("%w: the kernel knows no feature %s", fs.ErrNotExist, feature)
	}
	return onOff(f.On), nil
}

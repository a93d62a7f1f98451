package reload

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/nl/standing"
)

// sets lists the attributes of ethtool knobs that a parameter sets too, by the documents of both
// drivers and ethtool(8).
var sets = map[string][]string{
	"InterruptThrottleRate": {"coalesce.rx-usecs"},
	"RxDescriptors":         {"ring.rx"},
	"TxDescriptors":         {"ring.tx"},
	"FlowControl":           {"pause.rx", "pause.tx", "pause.autoneg"},
	"Speed":                 {"link.mode"},
	"Duplex":                {"link.mode"},
	"AutoNeg":               {"link.mode"},
	"XsumRX":                {"feature.rx-checksum"},
}

// take returns a picture of all interfaces of the driver.
func (d Driver) take(ctx context.Context) (picture, error) {
	p, err := d.outline()
	if err != nil {
		return picture{}, err
	}
	c, err := nl.Dial()
	if err != nil {
		return picture{}, err
	}
	defer c.Close()
	for i := range p.Cards {
		name, one := p.Links[i].Name, &p.Cards[i]
		one.Knobs, one.Sysctls = d.knobs(ctx, c, name, candidates(name)), sysctls(name)
		one.Affinity, _ = affinity(one.Slot)
	}
	p.Shown = shown(d.Module)
	return p, nil
}

// outline is a picture with all that can refuse a reload, without what is only read and written
// back: that costs most of a picture.
func (d Driver) outline() (picture, error) {
	adapters, err := d.adapters()
	if err != nil {
		return picture{}, err
	}
	if len(adapters) == 0 {
		return picture{}, fmt.Errorf("%w: %s drives no adapter here", knob.ErrNotSupported, d.Module)
	}
	c, err := nl.Dial()
	if err != nil {
		return picture{}, err
	}
	defer c.Close()
	var p picture
	var names []string
	for _, a := range adapters {
		names = append(names, a.name)
		uppers, err := filepath.Glob("/sys/class/net/" + a.name + "/upper_*")
		if err != nil {
			return picture{}, err
		}
		if len(uppers) > 0 {
			_, upper, _ := strings.Cut(filepath.Base(uppers[0]), "_")
			return picture{}, &standing.Refusal{Interface: a.name, Why: upper + " stands on it"}
		}
	}
	if p.Picture, err = standing.Take(c, names...); err != nil {
		return picture{}, err
	}
	for _, a := range adapters {
		one := card{Slot: a.slot}
		one.Wake, one.Messages = alertness(c, a.name)
		if one.Wake != nil && *one.Wake&ethtool.WakeMagicSecure != 0 {
			return picture{}, &standing.Refusal{Interface: a.name, Why: "it wakes the host by a password"}
		}
		p.Cards = append(p.Cards, one)
	}
	return p, nil
}

// shown reads the parameters of a module that have files.
func shown(module string) map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/sys/module/" + module + "/parameters/*") // the pattern is valid
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && len(bytes.Fields(b)) == 1 {
			found[filepath.Base(file)] = string(bytes.TrimSpace(b))
		}
	}
	return found
}

// candidates returns the knobs that an interface may have. Disciplines come back as messages and
// sysctls as files.
func candidates(name string) (ids []knob.ID) {
	queues, _ := os.ReadDir("/sys/class/net/" + name + "/queues") // hidden: no knobs of queues
	for _, definition := range knob.Catalogue().Own() {
		pattern := definition.Pattern
		if strings.Contains(pattern.Attribute(), "*") {
			continue // whatever a driver offers: features and private flags
		}
		switch pattern.Kind() {
		case knob.KindLink, knob.KindEthtool:
			ids = append(ids, knob.ID(pattern.Kind()+":"+name+"/"+pattern.Attribute()))
		case knob.KindQueue:
			_, direction, _ := strings.Cut(pattern.Subject(), "/")
			for _, q := range queues {
				if strings.HasPrefix(q.Name(), strings.TrimSuffix(direction, "*")) {
					ids = append(ids, knob.ID(knob.KindQueue+":"+name+"/"+q.Name()+"/"+pattern.Attribute()))
				}
			}
		}
	}
	return ids
}

// knobs reads knobs of an interface, without those that cannot be read, and all its features and
// private flags.
func (d Driver) knobs(ctx context.Context, c *nl.Client, name string, ids []knob.ID) map[knob.ID]knob.Value {
	found := map[knob.ID]knob.Value{}
	onOff := map[bool]knob.Value{true: "on", false: "off"}
	of := func(attribute string) knob.ID { return knob.ID(knob.KindEthtool + ":" + name + "/" + attribute) }
	e := ethtool.New(c)
	if features, err := e.Features(name); err == nil {
		for feature, f := range features {
			found[of("feature."+feature)] = onOff[f.On]
		}
	}
	if flags, err := e.PrivateFlags(name); err == nil {
		for flag, on := range flags {
			found[of("flag."+flag)] = onOff[on]
		}
	}
	for _, id := range ids {
		if _, ok := found[id]; ok || strings.HasPrefix(id.Attribute(), "feature.") {
			continue
		}
		if v, err := d.Knobs.Read(ctx, id); err == nil {
			found[id] = v
		}
	}
	return found
}

// sysctls reads the files of /proc/sys that belong to an interface and can be written.
func sysctls(name string) map[string]string {
	found := map[string]string{}
	for _, dir := range []string{"ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"} {
		at := filepath.Join("/proc/sys/net", dir, name)
		entries, err := os.ReadDir(at)
		if err != nil {
			continue // without IPv6
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || info.Mode()&0o200 == 0 {
				continue
			}
			file := filepath.Join(at, e.Name())
			if b, err := os.ReadFile(file); err == nil {
				found[file] = string(bytes.TrimSpace(b))
			}
		}
	}
	return found
}

// writeSysctls writes those that differ, in the order of their names. What is refused is found by
// comparing.
func (d Driver) writeSysctls(c card) {
	for _, file := range slices.Sorted(maps.Keys(c.Sysctls)) {
		if b, err := os.ReadFile(file); err == nil && string(bytes.TrimSpace(b)) != c.Sysctls[file] {
			_ = os.WriteFile(file, []byte(c.Sysctls[file]), 0)
		}
	}
}

// interrupts returns the numbers of the interrupts of an adapter in ascending order.
func interrupts(slot string) []int {
	var numbers []int
	entries, _ := os.ReadDir("/sys/bus/pci/devices/" + slot + "/msi_irqs") // none: a line
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		if b, err := os.ReadFile("/sys/bus/pci/devices/" + slot + "/irq"); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

func affinityFile(irq int) string { return fmt.Sprintf("/proc/irq/%d/smp_affinity_list", irq) }

// affinity returns the processors of the interrupts of an adapter, and the interrupts.
func affinity(slot string) (lists []string, irqs []int) {
	for _, n := range interrupts(slot) {
		if b, err := os.ReadFile(affinityFile(n)); err == nil {
			lists, irqs = append(lists, strings.TrimSpace(string(b))), append(irqs, n)
		}
	}
	return lists, irqs
}

// writeAffinity gives the interrupts their processors again, if the adapter has as many as before.
// An interrupt that the kernel manages itself refuses that, then and now.
func writeAffinity(c card) {
	now, irqs := affinity(c.Slot)
	if len(now) != len(c.Affinity) {
		return
	}
	for i, n := range irqs {
		if now[i] != c.Affinity[i] {
			_ = os.WriteFile(affinityFile(n), []byte(c.Affinity[i]), 0)
		}
	}
}

// alertness returns what wakes the host, and the driver's classes of messages; nil where the driver
// has none.
func alertness(c *nl.Client, name string) (wake, messages *uint32) {
	e := ethtool.New(c)
	if w, err := e.Wake(name); err == nil && w.Supported != 0 {
		wake = &w.On
	}
	if level, err := e.MessageLevel(name); err == nil {
		messages = &level
	}
	return wake, messages
}

// writeAlertness writes what differs. What is refused is found by comparing.
func writeAlertness(c *nl.Client, name string, card card) {
	e := ethtool.New(c)
	wake, messages := alertness(c, name)
	if card.Wake != nil && wake != nil && *wake != *card.Wake {
		_ = e.SetWake(name, *card.Wake)
	}
	if card.Messages != nil && messages != nil && *messages != *card.Messages {
		_ = e.SetMessageLevel(name, *card.Messages)
	}
}

// writeKnobs writes those that differ, until a round changes nothing: a feature may need another
// one. The mode of the link waits until the link is up. It returns what the last round has read.
func (d Driver) writeKnobs(ctx context.Context, c *nl.Client, l standing.Link, card card,
	up bool) (now map[knob.ID]knob.Value) {
	ids := slices.Sorted(maps.Keys(card.Knobs))
	for range 3 {
		wrote := false
		now = d.knobs(ctx, c, l.Name, ids)
		for _, id := range ids {
			if id.Attribute() == "link.mode" && !up {
				continue
			}
			if v, ok := now[id]; ok && v != card.Knobs[id] {
				wrote = d.Knobs.Write(ctx, id, card.Knobs[id]) == nil || wrote
			}
		}
		if !wrote {
			return now
		}
	}
	return d.knobs(ctx, c, l.Name, ids)
}

// differ names the knobs, sysctls and the like that are not as they were. present are the knobs as
// [Driver.writeKnobs] has left them.
func differ(c *nl.Client, l standing.Link, card card, present map[knob.ID]knob.Value) (names []string) {
	for _, id := range slices.Sorted(maps.Keys(card.Knobs)) {
		if now := present[id]; now != card.Knobs[id] {
			names = append(names, fmt.Sprintf("%s (%s, was %s)", id, now, card.Knobs[id]))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(card.Sysctls)) {
		b, err := os.ReadFile(file)
		if now := string(bytes.TrimSpace(b)); err != nil || now != card.Sysctls[file] {
			names = append(names, fmt.Sprintf("%s (%s, was %s)", file, now, card.Sysctls[file]))
		}
	}
	wake, messages := alertness(c, l.Name)
	if card.Wake != nil && (wake == nil || *wake != *card.Wake) {
		names = append(names, "wake-on-lan of "+l.Name)
	}
	if card.Messages != nil && (messages == nil || *messages != *card.Messages) {
		names = append(names, "message level of "+l.Name)
	}
	return names
}

// follow notes the knobs that a parameter sets too, as they are before its first change.
func (d Driver) follow(n *note, parameter string, from, to knob.Value) error {
	if n.Followed == nil {
		n.Followed = map[string]followed{}
	}
	if _, ok := n.Followed[parameter]; ok || from == to {
		return nil
	}
	f := followed{Value: from, Knobs: map[string]map[string]knob.Value{}}
	p := n.Pending.Picture
	for i, c := range p.Cards {
		f.Knobs[c.Slot] = map[string]knob.Value{}
		for _, attribute := range sets[parameter] {
			id := knob.ID(knob.KindEthtool + ":" + p.Links[i].Name + "/" + attribute)
			if v, ok := c.Knobs[id]; ok {
				f.Knobs[c.Slot][attribute] = v
			}
		}
	}
	n.Followed[parameter] = f
	return nil
}

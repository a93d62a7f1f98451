package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/nl/route"
	"github.com/linerate/linerate/internal/kernel/nl/tc"
)

// apply applies one setting in this process's namespaces. c is a client of the network namespace;
// sysctls do not need it.
func apply(c *nl.Client, name, value string) error {
	kind, rest, _ := strings.Cut(name, ":")
	// The parameter follows the last slash: a route's destination contains another slash.
	cut := strings.LastIndexByte(rest, '/')
	switch {
	// Below /proc/sys as this process sees it: the kernel resolves net.* in the namespace of the
	// process that opens the file.
	case kind == "sysctl" && rest != "":
		if err := os.WriteFile(sysctlPath(rest), []byte(value), 0); err != nil {
			return fmt.Errorf("set %s to %q: %w", name, value, err)
		}
		return nil
	case cut <= 0:
	case kind == "ethtool" && strings.HasPrefix(rest[cut+1:], "feature."):
		on, err := onOff(value)
		if err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
		return ethtool.New(c).SetFeature(rest[:cut], strings.TrimPrefix(rest[cut+1:], "feature."), on)
	case kind == "queue":
		// Each host mounts sysfs anew, so this is the host's own device.
		queue := filepath.Join("/sys/class/net", filepath.Dir(rest[:cut]), "queues", filepath.Base(rest[:cut]),
			rest[cut+1:])
		if err := os.WriteFile(queue, []byte(value), 0); err != nil {
			return fmt.Errorf("set %s to %q: %w", name, value, err)
		}
		return nil
	case kind == "qdisc" && rest[cut+1:] == "root":
		return setQdisc(c, rest[:cut], value)
	case kind == "link", kind == "route":
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("set %s to %q: want a whole number", name, value)
		}
		switch parameter := rest[cut+1:]; {
		case kind == "route":
			return route.New(c).SetMetric(rest[:cut], route.Metric(parameter), n)
		case parameter == "mtu":
			return c.SetMTU(rest[:cut], n)
		case parameter == "txqueuelen":
			return c.SetTxQueueLen(rest[:cut], n)
		}
		return writeKnob(name, value)
	case kind == "ethtool":
		return writeKnob(name, value)
	}
	return fmt.Errorf("set %s: the lab does not support this setting", name)
}

// writeKnob writes settings that only some NICs have (rings, coalescing, pause, link modes, limits
// of segmentation), by the catalogue's names and forms.
func writeKnob(name, value string) error {
	return live.New().Write(context.Background(), knob.ID(name), knob.Value(value))
}

// setQdisc makes a qdisc the root of a device. The value is a kind and pairs of name and value, as
// for tc(8) but in plain numbers. tbf takes rate (bits per second), burst and limit (bytes); other
// kinds take the names that package tc has.
func setQdisc(c *nl.Client, device, value string) error {
	kind, rest, _ := strings.Cut(value, " ")
	words := strings.Fields(rest)
	// Without units: scenario files contain plain numbers, as all documents do.
	if len(words)%2 != 0 {
		return fmt.Errorf("set qdisc of %s to %q: want a kind and pairs of name and value", device, value)
	}
	tbf := nl.TBF{}
	node := nl.QdiscNode{Kind: kind, Parent: nl.RootParent}
	for i := 0; i < len(words); i += 2 {
		name, v := words[i], words[i+1]
		if kind == "tbf" {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return fmt.Errorf("set qdisc of %s: tbf %s %q: %w", device, name, v, err)
			}
			switch name {
			case "rate":
				tbf.RateBitsPerSecond = n
			case "burst":
				tbf.BurstBytes = int(n)
			case "limit":
				tbf.LimitBytes = int(n)
			default:
				return fmt.Errorf("set qdisc of %s: tbf has no %q", device, name)
			}
			continue
		}
		options, err := tc.Change(kind, name, v)
		if err != nil {
			return fmt.Errorf("set qdisc of %s: %w", device, err)
		}
		node.Options = append(node.Options, options...) // the attributes follow one another
	}
	switch {
	case kind == "tbf":
		return c.ReplaceTBF(device, tbf)
	case len(words) == 0:
		return c.ReplaceQdisc(device, kind)
	}
	return c.PutQdisc(device, node)
}

func onOff(v string) (bool, error) {
	switch v {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, fmt.Errorf("value %q: want on or off", v)
}

// sysctlPath returns the file of a sysctl. A name with slashes separates its elements by them, so
// that an element may contain dots.
func sysctlPath(name string) string {
	if !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, ".", "/")
	}
	return filepath.Join("/proc/sys", name)
}

// applyToMachine sets a sysctl in the namespaces of the calling process and returns a function that
// restores it.
func applyToMachine(name, value string) (undo func(), err error) {
	file, ok := strings.CutPrefix(name, "sysctl:")
	if !ok {
		return nil, fmt.Errorf("set %s: the lab sets only sysctls of the machine itself", name)
	}
	// The previous value and not the default: a guest may have been set up differently for all its
	// cases.
	old, err := os.ReadFile(sysctlPath(file))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if err := apply(nil, name, value); err != nil {
		return nil, err
	}
	// The restored value cannot be refused: it was in force before.
	return func() { _ = apply(nil, name, strings.TrimSpace(string(old))) }, nil
}

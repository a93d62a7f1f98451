package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/knob"
	"github.com/linerate/linerate/internal/nl"
	"github.com/linerate/linerate/internal/nl/tc"
)

// set makes one setting true in this process's namespaces. It is how a world gets its faults, and knows just the kinds that these need.
func set(c *nl.Client, s Setting) error {
	kind, rest, _ := strings.Cut(s.Knob, ":")
	// The parameter is what follows the last slash: a route's destination has one of its own.
	cut := strings.LastIndexByte(rest, '/')
	switch {
	// Below /proc/sys as this process sees it: net.* there are those of the namespace of whoever opens the file.
	case kind == "sysctl" && rest != "":
		if err := os.WriteFile(sysctlPath(rest), []byte(s.Value), 0); err != nil {
			return fmt.Errorf("set %s to %q: %w", s.Knob, s.Value, err)
		}
		return nil
	case cut <= 0:
	case kind == "ethtool" && strings.HasPrefix(rest[cut+1:], "feature."):
		on, err := onOff(s.Value)
		if err != nil {
			return fmt.Errorf("set %s: %w", s.Knob, err)
		}
		return c.SetFeature(rest[:cut], strings.TrimPrefix(rest[cut+1:], "feature."), on)
	case kind == "queue":
		// sysfs is mounted anew in each host, so this is the host's own device.
		queue := filepath.Join("/sys/class/net", filepath.Dir(rest[:cut]), "queues", filepath.Base(rest[:cut]), rest[cut+1:])
		if err := os.WriteFile(queue, []byte(s.Value), 0); err != nil {
			return fmt.Errorf("set %s to %q: %w", s.Knob, s.Value, err)
		}
		return nil
	case kind == "qdisc" && rest[cut+1:] == "root":
		return setQdisc(c, rest[:cut], s.Value)
	case kind == "link", kind == "route":
		n, err := strconv.Atoi(s.Value)
		if err != nil {
			return fmt.Errorf("set %s to %q: want a whole number", s.Knob, s.Value)
		}
		switch parameter := rest[cut+1:]; {
		case kind == "route":
			return c.SetRouteMetric(rest[:cut], nl.RouteMetric(parameter), n)
		case parameter == "mtu":
			return c.SetMTU(rest[:cut], n)
		case parameter == "txqueuelen":
			return c.SetTxQueueLen(rest[:cut], n)
		}
	case kind == "ethtool":
		// Rings, coalescing, pause, link modes: what a card of a guest has, by the catalogue's names and forms.
		return knob.NewLive().Write(context.Background(), knob.ID(s.Knob), knob.Value(s.Value))
	}
	return fmt.Errorf("set %s: the lab knows no such setting", s.Knob)
}

// setHere makes sysctls true in the namespaces of the process that makes worlds, and gives what puts them back. Scenario.Check allows
// that in guests alone; they are put back because the next case may be played in the same guest.
func setHere(settings []Setting) (undo func(), err error) {
	var old []Setting
	undo = func() {
		for _, s := range slices.Backward(old) {
			_ = set(nil, s) // it was accepted before
		}
	}
	for _, s := range settings {
		name, ok := strings.CutPrefix(s.Knob, "sysctl:")
		if !ok {
			return undo, fmt.Errorf("set %s: of the machine itself only sysctls can be set", s.Knob)
		}
		b, err := os.ReadFile(sysctlPath(name))
		if err != nil {
			return undo, fmt.Errorf("read %s: %w", s.Knob, err)
		}
		if err := set(nil, s); err != nil {
			return undo, err
		}
		old = append(old, Setting{s.Knob, strings.TrimSpace(string(b))})
	}
	return undo, nil
}

// setQdisc makes a discipline the root of a device, described as by tc(8) but in plain numbers: a kind and pairs of name and value. Of
// tbf these are rate (bits per second), burst and limit (bytes); of others those that package tc knows.
func setQdisc(c *nl.Client, device, value string) error {
	kind, rest, _ := strings.Cut(value, " ")
	words := strings.Fields(rest)
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
		node.Options = append(node.Options, options...) // attributes stand one after the other
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

// sysctlPath is the file of a sysctl. A name with slashes has them between its elements, so that an element may hold dots.
func sysctlPath(name string) string {
	if !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, ".", "/")
	}
	return filepath.Join("/proc/sys", name)
}

// sysctlName is the knob of a file below /proc/sys: dots between elements, unless one of them has a dot itself.
func sysctlName(rel string) string {
	if !strings.Contains(rel, ".") {
		rel = strings.ReplaceAll(rel, "/", ".")
	}
	return "sysctl:" + rel
}

// volatile are the files below /proc/sys/net that the kernel itself changes, and a command.
var volatile = []string{"netfilter/nf_conntrack_count", "ipv4/route/flush", "ipv6/route/flush", "core/netdev_rss_key"}

// snapshot writes every setting of this host that anybody could change as one JSON object: all of /proc/sys/net, the routes with their
// metrics, and MTU, queue length and features of all interfaces. Two snapshots are equal if and only if every value is back.
func snapshot(c *nl.Client, w io.Writer) error {
	all := map[string]string{}
	const base = "/proc/sys/net"
	// Everything and not only what the catalogue knows: the proof is that nothing has changed, also nothing that nobody thought of.
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel := strings.TrimPrefix(path, base+"/")
		for _, v := range volatile {
			if rel == v {
				return nil
			}
		}
		// Some files are write-only or answer with an error until set (stable_secret); what cannot be read is not compared.
		if b, err := os.ReadFile(path); err == nil {
			all[sysctlName("net/"+rel)] = strings.Join(strings.Fields(string(b)), " ")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	routes, err := c.Routes()
	if err != nil {
		return err
	}
	metrics := []nl.RouteMetric{nl.MetricWindow, nl.MetricMTU, nl.MetricAdvMSS, nl.MetricInitCwnd, nl.MetricInitRwnd, nl.MetricQuickack}
	for _, r := range routes {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		all["route:"+r.Destination+" dev "+r.Interface] = string(b) // all of it, also what is no knob
		for _, m := range metrics {
			if v := r.Metric(m); v != 0 {
				all["route:"+r.Destination+"/"+string(m)] = strconv.Itoa(v)
			}
		}
	}
	links, err := c.Links()
	if err != nil {
		return err
	}
	for _, l := range links {
		all["link:"+l.Name+"/mtu"] = strconv.Itoa(l.MTU)
		all["link:"+l.Name+"/txqueuelen"] = strconv.Itoa(l.TxQueueLen)
		features, err := c.Features(l.Name)
		if errors.Is(err, nl.ErrNotSupported) {
			continue
		} else if err != nil {
			return err
		}
		for name, f := range features {
			all["ethtool:"+l.Name+"/feature."+name] = map[bool]string{true: "on", false: "off"}[f.On]
		}
	}
	return json.NewEncoder(w).Encode(all)
}

package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/report"
)

// shownSettings are the settings on the first screen: they bound windows and queues and choose the
// congestion control. The document has all settings, too many to leave room for the ceilings.
var shownSettings = []string{
	"sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_wmem", "sysctl:net.core.rmem_max", "sysctl:net.core.wmem_max",
	"sysctl:net.ipv4.tcp_window_scaling", "sysctl:net.ipv4.tcp_congestion_control", "sysctl:net.core.default_qdisc",
	"sysctl:net.core.netdev_max_backlog",
}

// Inspect writes an inspect document as one screen of text.
func Inspect(w io.Writer, d *report.InspectDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s", s.bold(clean(hostLine(d.Host, len(d.CPUs)))))
	if owners := ownersText(d.Owners); owners != "" {
		p.wrapped("", owners)
	}

	p.line("")
	p.head("INTERFACES")
	t := newTable("name", "driver", "state", "link", ">mtu", "qdisc", "rings rx/tx", "offloads off", "carries",
		"addresses")
	carried := carries(d.Interfaces)
	for _, l := range layers(d.Interfaces) {
		t.row(l.name(), l.driver(), l.each(state), l.each(linkText), l.each(mtuText), l.each(qdiscText),
			ringText(l.members[0].Rings),
			offText(l.members[0].Features), carried[l.members[0].Name], l.addresses())
	}
	t.print(p, "  ")
	inspectLosses(p, d)
	inspectHardware(p, d)

	t = newTable()
	shown := 0
	for _, name := range shownSettings {
		for _, set := range d.Settings {
			if set.Knob == name {
				t.row(strings.TrimPrefix(name, "sysctl:"), set.Value)
				shown++
			}
		}
	}
	if len(d.Settings) > 0 {
		p.line("")
		p.head("SETTINGS")
		t.print(p, "  ")
	}
	if more := len(d.Settings) - shown; more > 0 {
		p.line("  %s", s.dim(fmt.Sprintf("and %d more with --json", more)))
	}

	if len(d.Ceilings) > 0 {
		p.line("")
		p.head("CEILINGS")
		t = newTable("name", ">rate", "why")
		t.wrap = true
		for _, c := range d.Ceilings {
			t.row(c.Name, unit.BitRate(c.BitsPerSec), c.Why)
		}
		t.print(p, "  ")
	}
	inspectModeration(p, d)
	p.notes("NOT READ", d.Warnings)
	return p.err
}

// inspectLosses prints the counters of packets that were lost, damaged or held back.
func inspectLosses(p *printer, d *report.InspectDocument) {
	t := newTable("where", "counter", ">count", "meaning")
	t.wrap = true
	for _, i := range d.Interfaces {
		for n, s := range i.Symptoms {
			if n == maxSymptoms {
				t.row(i.Name, "", "", fmt.Sprintf("and %d more with --json", len(i.Symptoms)-n))
				break
			}
			t.row(i.Name, s.Counter, s.Total, s.Meaning)
		}
	}
	// One row for all processors; the document has each one.
	var taken host.Softnet
	for _, c := range d.Softnet {
		taken.Dropped, taken.TimeSqueeze, taken.FlowLimit = taken.Dropped+c.Dropped, taken.TimeSqueeze+c.TimeSqueeze,
			taken.FlowLimit+c.FlowLimit
	}
	for _, s := range []struct {
		name    string
		n       uint64
		meaning string
	}{
		{"dropped", taken.Dropped, "the backlog of a processor was full (netdev_max_backlog)"},
		{"time_squeeze", taken.TimeSqueeze,
			"rounds of the receive softirq that ended with work left (netdev_budget, netdev_budget_usecs)"},
		{"flow_limit", taken.FlowLimit, "packets dropped from flows that filled most of a backlog"},
	} {
		if s.n > 0 {
			t.row("softnet", s.name, s.n, s.meaning)
		}
	}
	for _, q := range d.Qdiscs {
		// A parent repeats what its children dropped.
		if q.Drops > 0 && q.Parent == "root" {
			t.row(q.Interface, "qdisc "+q.Kind, q.Drops,
				"dropped by the queueing discipline in front of the card: by its limit, or to keep queues short")
		}
	}
	if len(t.rows) > 0 {
		p.line("")
		p.head("LOST OR HELD BACK SINCE BOOT")
		t.print(p, "  ")
	}
}

// inspectModeration prints how many requests per second the interrupt throttles allow one client
// that waits for each answer, and the known hazards of their settings.
func inspectModeration(p *printer, d *report.InspectDocument) {
	t := newTable("name", ">requests/s", "why")
	t.wrap = true
	for _, m := range d.Moderation {
		rate := "no bound"
		if m.TransactionsPerSec > 0 {
			rate = unit.FormatCount(m.TransactionsPerSec)
		}
		t.row(strings.TrimSpace(m.Interface+" "+m.Controller), rate, m.Throttle+": "+m.Why)
		for _, h := range m.Hazards {
			t.row("", string(h.Severity), fmt.Sprintf("%s %d: %s (%s)", h.Parameter, h.Value, h.Why, h.Source))
		}
	}
	if len(t.rows) > 0 {
		p.line("")
		p.head("INTERRUPT MODERATION")
		t.print(p, "  ")
	}
}

// maxSymptoms is how many counters of one NIC the first screen shows.
const maxSymptoms = 6

// inspectHardware prints a line for each NIC, and one each for processors, tables and NFS mounts.
func inspectHardware(p *printer, d *report.InspectDocument) {
	t := newTable("", "")
	t.head, t.wrap = nil, true
	// The ports of one NIC share a line unless their configuration differs.
	names := make(map[string]string)
	var texts []string
	for _, i := range d.Interfaces {
		text := cardText(i)
		if names[text] == "" {
			texts = append(texts, text)
		}
		names[text] = strings.TrimSpace(names[text] + " " + i.Name)
	}
	for _, text := range texts {
		if text != "" {
			t.row(names[text], text)
		}
	}
	if text := processorText(d.CPUs, d.Idle); text != "" {
		t.row("processors", text)
	}
	if text := tablesText(d.Tables); text != "" {
		t.row("tables", text)
	}
	for _, m := range d.Mounts {
		t.row("nfs", m.Path+" from "+m.Source+": "+mountText(m.Options))
	}
	if len(t.rows) > 0 {
		p.line("")
		p.head("HARDWARE AND KERNEL")
		t.print(p, "  ")
	}
}

// notes prints sentences under a title; without sentences it prints nothing.
func (p *printer) notes(title string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	p.line("")
	p.head(title)
	for _, n := range sentences {
		p.wrapped("  ", n)
	}
}

// hostLine describes the machine on one line, without what is not known.
func hostLine(h report.Host, cpus int) string {
	parts := []string{h.Name, strings.TrimSpace(systemName(h.OS) + " " + h.Kernel)}
	if h.Arch != "" {
		parts = append(parts, h.Arch)
	}
	switch {
	case cpus == 1:
		parts = append(parts, "1 CPU")
	case cpus > 1:
		parts = append(parts, fmt.Sprintf("%d CPUs", cpus))
	}
	if h.MemoryBytes > 0 {
		parts = append(parts, unit.Bytes(h.MemoryBytes).String())
	}
	if h.Virtualization != "" {
		parts = append(parts, "virtual: "+h.Virtualization)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// systemName returns the usual spelling of an operating system.
func systemName(goos string) string {
	switch goos {
	case "linux":
		return "Linux"
	case "freebsd":
		return "FreeBSD"
	case "windows":
		return "Windows"
	}
	return goos
}

// state returns the state of an interface: up only with a carrier.
func state(i host.Interface) string {
	switch {
	case i.Asleep:
		return "asleep"
	case !i.Up:
		return "down"
	case !i.Carrier:
		return "no link"
	}
	return "up"
}

// linkText returns speed and duplex of a real link. A virtual link only has a configured number, so
// its text is "virtual".
func linkText(i host.Interface) string {
	switch {
	case i.Virtual:
		return "virtual"
	case i.SpeedBitsPerSec <= 0:
		return ""
	}
	return strings.TrimSpace(unit.BitRate(i.SpeedBitsPerSec).String() + " " + i.Duplex)
}

func mtuText(i host.Interface) string { return strconv.Itoa(i.MTUBytes) }

func qdiscText(i host.Interface) string { return i.Qdisc }

// ringText returns the descriptor rings as present size of largest size, receive first.
func ringText(r *host.Rings) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d / %d of %d", r.Rx.Current, r.Rx.Max, r.Tx.Current, r.Tx.Max)
}

// offText names the offloads for bulk traffic that are off and could be on. A fixed feature cannot
// be changed and is left out.
func offText(features map[string]host.Feature) string {
	var off []string
	for _, f := range []struct{ feature, word string }{
		{"tx-tcp-segmentation", "tso"}, {"tx-generic-segmentation", "gso"}, {"rx-gro", "gro"},
		{"tx-scatter-gather", "sg"},
	} {
		if v, ok := features[f.feature]; ok && !v.On && !v.Fixed {
			off = append(off, f.word)
		}
	}
	return strings.Join(off, " ")
}

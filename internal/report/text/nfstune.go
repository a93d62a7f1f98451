package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/transfer"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// nfsTune prints a sweep: the result, the trials, the points with their losses, and what to keep.
func (p *printer) nfsTune(d *report.NFSDocument) {
	verdict, sentence := d.Headline()
	paint := p.s.yellow
	if verdict == "Proved" {
		paint = p.s.green
	}
	p.hanging(p.s.bold(paint(verdict))+"  ", utf8.RuneCountInString(verdict)+2, sentence)
	p.line("")
	p.line("%s", p.s.bold(clean(d.Target)))
	b := d.Baseline
	p.wrapped("  ", fmt.Sprintf("%s · NFS %s over %s · an empty call takes %s · without options rsize %s, wsize %s, "+
		"nconnect %d, read-ahead %s", d.Server.Address, b.Version, b.Protocol, unit.FormatSeconds(d.Server.RoundTrip),
		unit.Bytes(b.ReadSize), unit.Bytes(b.WriteSize), b.Connections, unit.Bytes(b.ReadAhead)))
	p.wrapped("  ", cacheText(d))
	if len(d.Experiment.Trials) > 0 {
		p.line("")
		p.head("TRIALS")
		p.ladder(d.Experiment.Trials)
	}
	if len(d.Sweep) > 0 {
		p.line("")
		p.head("SWEEP")
		p.sweep(d)
	}
	if d.Best != nil && d.Best.Proved {
		p.line("")
		p.head("KEEP")
		p.keep(d.Best.Keep)
	}
	p.notes("WARNINGS", d.Warnings)
}

// cacheText says what could have answered the reads.
func cacheText(d *report.NFSDocument) string {
	text := "Each segment has a new mount, so this host's cache was empty. "
	n := d.Server.SegmentsRead
	switch {
	case n[mount.ServerWarm] > 0:
		return text + "The file was just written, so the server read it from its memory: the figures are those of the " +
			"network and the protocol. --file FILE reads one that lies on the server's disk."
	case n[mount.ServerReused] > 0:
		return text + fmt.Sprintf("%d segments read parts of %s for the first time in this run, %d again.",
			n[mount.ServerCold], d.Server.File, n[mount.ServerReused])
	case n[mount.ServerCold] > 0:
		return text + fmt.Sprintf("Each segment read another part of %s, so this run has not brought it into the server's "+
			"memory.", d.Server.File)
	}
	return text + "Nothing was read."
}

// sweep prints the points. Options that all of them have in common stand above the table, and the
// places of losses below it, so that the table fits 80 columns.
func (p *printer) sweep(d *report.NFSDocument) {
	options := []struct {
		name string
		of   func(x transfer.Point) string
	}{
		{"rsize", func(x transfer.Point) string { return unit.Bytes(x.ReadSize).String() }},
		{"wsize", func(x transfer.Point) string { return unit.Bytes(x.WriteSize).String() }},
		{"nconnect", func(x transfer.Point) string { return strconv.Itoa(x.Connections) }},
		{"read-ahead", func(x transfer.Point) string { return unit.Bytes(x.ReadAhead).String() }},
		{"proto", func(x transfer.Point) string { return x.Protocol }},
	}
	var varied, common []string
	for _, o := range options {
		first := o.of(d.Sweep[0])
		if slices.ContainsFunc(d.Sweep, func(x transfer.Point) bool { return o.of(x) != first }) {
			varied = append(varied, o.name)
		} else {
			common = append(common, o.name+" "+first)
		}
	}
	if len(common) > 0 {
		p.wrapped("  ", "All points: "+strings.Join(common, ", "))
	}
	named := func(x transfer.Point) string {
		var all []string
		for _, o := range options {
			if slices.Contains(varied, o.name) {
				all = append(all, o.name+" "+o.of(x))
			}
		}
		return cmp.Or(strings.Join(all, ", "), "all points")
	}
	t := newTable(">rsize", ">wsize", ">nconnect", ">read-ahead", "proto", ">read", ">write", ">frames", ">resent",
		">misordered", ">dropped", "waits")
	var lost []string
	for _, x := range d.Sweep {
		row := make([]any, len(options))
		for i, o := range options {
			row[i] = ""
			if slices.Contains(varied, o.name) {
				row[i] = o.of(x)
			}
		}
		dropped := uint64(0)
		for _, drop := range x.Drops {
			dropped += drop.Total
		}
		t.row(append(row, bytesPerSecond(x.ReadRate), bytesPerSecond(x.WriteRate), x.ReadFrames, x.Resent+x.TCPRetransmits,
			x.OutOfOrder, dropped, x.Waits)...)
		if dropped > 0 {
			lost = append(lost, fmt.Sprintf("Dropped at %s: %s", named(x), dropText(x)))
		}
	}
	t.print(p, "  ")
	p.line("")
	for _, line := range lost {
		p.wrapped("  ", line)
	}
	if c := d.Server.Card; c.Ring > 0 {
		p.wrapped("  ", fmt.Sprintf("%s (MTU %d) has a receive ring of %d frames. \"frames\" are those of one read call: "+
			"they come back to back, and read-ahead asks for several at once.", c.Name, c.MTU, c.Ring))
	}
	if d.LossesFrom > 0 {
		p.wrapped("  ", fmt.Sprintf("Losses begin at rsize %s; smaller reads lost next to nothing.",
			unit.Bytes(d.LossesFrom)))
	}
}

func bytesPerSecond(rate float64) string {
	if rate == 0 {
		return ""
	}
	return unit.Bytes(rate).String() + "/s"
}

func dropText(x transfer.Point) string {
	var all []string
	for _, d := range x.Drops {
		all = append(all, fmt.Sprintf("%s %d", d.Place, d.Total))
	}
	return strings.Join(all, ", ")
}

func (p *printer) keep(k mount.Persisted) {
	p.line("  /etc/fstab:  %s", clean(k.Fstab))
	p.line("  autofs map:  %s", clean(k.Autofs))
	p.line("  systemd, /etc/systemd/system/%s:", clean(k.Unit))
	p.indented(k.Systemd)
	if k.NFSConf != "" {
		p.line("  read-ahead, /etc/nfs.conf (nfsrahead of nfs-utils sets it at each mount):")
		p.indented(k.NFSConf)
		p.line("  read-ahead now:  %s", clean(k.Kernel))
	}
}

// indented prints the content of a file, which the reader copies.
func (p *printer) indented(content string) {
	for line := range strings.Lines(content) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			line = "    " + clean(line)
		}
		p.exact("%s", line)
	}
}

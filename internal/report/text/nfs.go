package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage/nfs"
)

// shownOperations is how many procedures of a mount are printed: those with the most time come
// first.
const shownOperations = 8

// NFS writes an NFS document as text.
func NFS(w io.Writer, d *report.NFSDocument, s Style) error {
	p := &printer{w: w, s: s}
	if d.Experiment != nil {
		p.nfsTune(d)
		return p.err
	}
	if len(d.Mounts) == 0 {
		p.line("%s has no NFS mount.", nameOr(d.Host.Name, "this host"))
	}
	for i, m := range d.Mounts {
		if i > 0 {
			p.line("")
		}
		p.nfsMount(m)
	}
	p.notes("WARNINGS", d.Warnings)
	return p.err
}

func (p *printer) nfsMount(m nfs.Mount) {
	p.line("%s", p.s.bold(clean(fmt.Sprintf("%s on %s", m.Source, m.Path))))
	about := []string{m.Type}
	if m.Protocol != "" {
		about = append(about, m.Protocol)
	}
	about = append(about, unit.Counted(m.Connections, "connection"))
	if m.ReadSize > 0 {
		about = append(about, fmt.Sprintf("rsize %s, wsize %s", unit.Bytes(m.ReadSize), unit.Bytes(m.WriteSize)))
	}
	if m.ReadAhead > 0 {
		about = append(about, "read-ahead "+unit.Bytes(m.ReadAhead).String())
	}
	about = append(about, "over "+unit.FormatSeconds(m.SpanSeconds))
	p.wrapped("  ", strings.Join(about, " · "))
	p.line("")
	p.line("  calls wait: %s", p.s.bold(string(m.Waits)))
	for _, why := range m.Because {
		p.wrapped("    ", why)
	}
	if len(m.Operations) > 0 {
		p.line("")
		t := newTable("operation", ">calls", ">bytes/call", ">queue", ">round trip", ">in all", ">resent", ">errors", "waits")
		for _, o := range m.Operations[:min(len(m.Operations), shownOperations)] {
			if o.Unusable {
				t.row(o.Operation, unit.FormatCount(float64(o.Requests)), "", "", "", "", "", "", "unusable counters")
				continue
			}
			t.row(o.Operation, unit.FormatCount(float64(o.Requests)), unit.Bytes(o.BytesPerCall),
				unit.FormatSeconds(o.QueueSeconds), unit.FormatSeconds(o.RoundTrip), unit.FormatSeconds(o.Execution),
				unit.FormatCount(float64(o.Retransmissions)), unit.FormatCount(float64(o.Errors)), o.Waits)
		}
		t.print(p, "  ")
		p.more(len(m.Operations) - shownOperations)
	}
	p.notes("TAKE WITH CARE", m.Warnings)
}

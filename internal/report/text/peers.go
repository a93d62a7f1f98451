package text

import (
	"io"
	"time"

	"github.com/linerate/linerate/internal/report"
)

// Peers writes what a command did to the peers, or else their list.
func Peers(w io.Writer, d *report.PeersDocument, s Style) error {
	p := &printer{w: w, s: s}
	switch {
	case d.Added != nil:
		for i := range d.Peers {
			if e := &d.Peers[i]; e.Name == d.Added.Name {
				until := "it is revoked"
				if e.Expires != nil {
					until = dayTime(e.Expires)
				}
				p.wrapped("", e.Name+" may "+mayDo(e)+", until "+until)
			}
		}
		// On a line of its own and never wrapped: it is pasted.
		p.line("on the other host:")
		p.exact("  %s", d.Added.Command)
		p.wrapped("", "`linerate serve --peers` answers this key; one that runs does so within a second")
	case d.Revoked != "":
		p.wrapped("", d.Revoked+" is revoked: a running serve closes its connections within a second, "+
			"and takes back its trials")
	case len(d.Peers) == 0:
		p.wrapped("", "no peer is in "+d.File+": `linerate peers add NAME` makes a key")
	default:
		t := newTable("peer", "may", "expires", "last use", "from")
		for i := range d.Peers {
			e := &d.Peers[i]
			expires := cell{text: dayTime(e.Expires)}
			if e.Expired {
				expires.paint = s.yellow
			}
			t.row(e.Name, mayDo(e), expires, dayTime(e.LastUse), e.LastFrom)
		}
		t.print(p, "")
	}
	return p.err
}

// mayDo says what a peer may do.
func mayDo(e *report.PeerEntry) string {
	if e.AllowTuning {
		return "measure and tune: " + e.Tuning
	}
	return "measure"
}

// dayTime is a time of this host's zone, to the second.
func dayTime(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

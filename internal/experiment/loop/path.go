package loop

import (
	"time"

	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/traffic"
)

// Path is what the first diagnosis of a tune found, from which values are chosen.
type Path struct {
	RoundTrip time.Duration // without load; 0: not known
	NIC       string        // of the near host, that carries the path; empty: not known
	// BitsPerSecond is the largest rate that a stream or datagrams reached; 0: none was measured.
	BitsPerSecond float64
}

// pathOf returns the path of a diagnosis.
func pathOf(v *Verdict) Path {
	p := Path{RoundTrip: roundTrip(v)}
	if card := v.cardOf(tune.Near); card != nil {
		p.NIC = card.Name
	}
	for _, r := range v.Runs {
		if r.Test == traffic.Stream || r.Test == traffic.UDP {
			p.BitsPerSecond = max(p.BitsPerSecond, r.ThroughputBitsPerSec)
		}
	}
	return p
}

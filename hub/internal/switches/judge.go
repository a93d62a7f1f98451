package switches

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// Thresholds. A cable within the standard damages less than one frame in a hundred million, so one
// in a million is a fault; ten of a kind are more than chance.
const (
	fewLost      = 10
	damagedShare = 1e-6
	damagedMuch  = 1e-3
	droppedShare = 1e-4
	droppedMuch  = 1e-2
	fullShare    = 0.8 // of the speed: a queue in front of it is no surprise
)

// mostFindings is how many findings of one switch are kept, the worst first: a switch with more has
// one cause that they do not name.
const mostFindings = 32

// Codes returns the codes that this package gives.
func Codes() []evidence.Code {
	return []evidence.Code{evidence.SwitchHalfDuplex, evidence.SwitchPortErrors, evidence.SwitchPortDiscards,
		evidence.LossAtSwitch}
}

// Findings judges the last minutes of the switch's ports.
func (k *Keeper) Findings() []evidence.Finding {
	var out []evidence.Finding
	for _, d := range k.deltas() {
		if !d.port.Up || d.over <= 0 {
			continue
		}
		if f := k.halfDuplex(&d); f != nil {
			out = append(out, *f)
		} else if f := k.damaged(&d); f != nil {
			out = append(out, *f)
		}
		if f := k.dropped(&d); f != nil {
			out = append(out, *f)
		}
	}
	sorting.StableFunc(out, func(a, b evidence.Finding) int { return severity(b.Severity) - severity(a.Severity) })
	return out[:min(len(out), mostFindings)]
}

func severity(s evidence.Severity) int {
	return slices.Index([]evidence.Severity{evidence.Info, evidence.Notice, evidence.Warning, evidence.Critical}, s)
}

// at names a port of the switch for a sentence, and where for Finding.Where.
func (k *Keeper) at(p *mib.Port) string {
	if p.Alias != "" && p.Alias != p.Name {
		return fmt.Sprintf("port %s (%s) of %s", p.Name, p.Alias, k.name)
	}
	return fmt.Sprintf("port %s of %s", p.Name, k.name)
}

func (k *Keeper) where(p *mib.Port) string { return "switch " + k.name + " " + p.Name }

// fact is evidence that an object of the MIB gives.
func (k *Keeper) fact(name string, value any, unit, object string) evidence.Evidence {
	return evidence.Evidence{Name: name, Value: value, Unit: unit, Source: object + " (" + k.name + ")"}
}

func over(d time.Duration) string { return "in " + evidence.Seconds(math.Round(d.Seconds())) }

// use returns the larger share of the port's speed that a direction carried; 0: unknown.
func use(d *delta, bytes mib.Counter) float64 {
	if d.port.Speed <= 0 {
		return 0
	}
	return 8 * d.rate(bytes) / d.port.Speed
}

func (k *Keeper) common(d *delta) []evidence.Evidence {
	out := []evidence.Evidence{
		k.fact("rate in", 8*d.rate(mib.InBytes), "bits_per_second", "ifHCInOctets"),
		k.fact("rate out", 8*d.rate(mib.OutBytes), "bits_per_second", "ifHCOutOctets"),
	}
	if d.port.Speed > 0 {
		out = append(out, k.fact("speed of the port", d.port.Speed, "bits_per_second", "ifHighSpeed"))
	}
	if d.port.Duplex != "" {
		out = append(out, k.fact("duplex mode", string(d.port.Duplex), "", "dot3StatsDuplexStatus"))
	}
	if n := neighbourOf(d.port); n != "" {
		out = append(out, k.fact("neighbour", n, "", "lldpRemTable"))
	}
	return out
}

// halfDuplex finds a port that cannot send and receive at once, or collides although it could.
func (k *Keeper) halfDuplex(d *delta) *evidence.Finding {
	late := d.sum(mib.LateCollisions)
	half := d.port.Duplex == mib.Half
	if !half && late < 1 {
		return nil
	}
	f := &evidence.Finding{Code: evidence.SwitchHalfDuplex, Severity: evidence.Warning, Confidence: 0.9,
		Where: k.where(d.port), Evidence: k.common(d), Rejected: []string{},
		Remedy: evidence.Remedy{Knobs: []string{},
			Text: "Let both ends of the cable negotiate: an end with a forced mode does not, and the other end then " +
				"falls back to half duplex. Replace a device that knows no full duplex.",
			Proof: "Run both directions at once before and after: a half-duplex link divides one rate between them."}}
	f.Evidence = append(f.Evidence, k.fact("late collisions "+over(d.over), late, "frames", "dot3StatsLateCollisions"),
		k.fact("damaged frames "+over(d.over), d.sum(mib.FCSErrors, mib.AlignmentErrors), "frames",
			"dot3StatsFCSErrors + dot3StatsAlignmentErrors"))
	switch {
	case half && late >= 1:
		f.Title = fmt.Sprintf("%s is half duplex and counts %s late collisions %s: the other end sends at full duplex.",
			upper(k.at(d.port)), evidence.Count(late), over(d.over))
		f.Confidence = 0.97
	case half:
		f.Title = fmt.Sprintf("%s is half duplex: it cannot send and receive at the same time.", upper(k.at(d.port)))
		if use(d, mib.InBytes)+use(d, mib.OutBytes) < 0.01 {
			f.Severity, f.Confidence = evidence.Notice, 0.8
		}
		f.Rejected = append(f.Rejected, "Not a mismatch as far as seen: no late collision "+over(d.over)+".")
	default:
		f.Title = fmt.Sprintf("%s counts %s late collisions %s, each of which is a lost frame.", upper(k.at(d.port)),
			evidence.Count(late), over(d.over))
	}
	if d.sum(mib.InErrors, mib.FCSErrors) > 0 {
		f.Causes = append(f.Causes, evidence.SwitchPortErrors)
	}
	return f
}

// damaged finds frames that arrive damaged.
func (k *Keeper) damaged(d *delta) *evidence.Finding {
	kinds := d.sum(mib.FCSErrors, mib.AlignmentErrors, mib.SymbolErrors)
	bad := max(d.sum(mib.InErrors), d.sum(mib.FCSErrors, mib.AlignmentErrors))
	if bad -= d.sum(mib.TooLong); bad < fewLost {
		return nil
	}
	share := bad / (bad + d.sum(framesIn...))
	if share < damagedShare {
		return nil
	}
	f := &evidence.Finding{Code: evidence.SwitchPortErrors, Severity: evidence.Warning,
		Confidence: evidence.Combine(0.6, evidence.When(kinds > 0, 0.75)), Where: k.where(d.port),
		Title: fmt.Sprintf("%s receives %s damaged frames %s, %s of all.", upper(k.at(d.port)), evidence.Count(bad),
			over(d.over), evidence.Percent(share)),
		Evidence: append(k.common(d),
			k.fact("receive errors "+over(d.over), d.sum(mib.InErrors), "frames", "ifInErrors"),
			k.fact("wrong checksums "+over(d.over), d.sum(mib.FCSErrors), "frames", "dot3StatsFCSErrors"),
			k.fact("alignment errors "+over(d.over), d.sum(mib.AlignmentErrors), "frames", "dot3StatsAlignmentErrors"),
			k.fact("share of the frames", share, "ratio", "of those with the frames received intact")),
		Rejected: []string{fmt.Sprintf("Not frames that are too long: %s of them, which are subtracted "+
			"(dot3StatsFrameTooLongs).", evidence.Count(d.sum(mib.TooLong))),
			"Not seen as a duplex mismatch: no late collision at this end; the other end may count them."},
		Remedy: evidence.Remedy{Knobs: []string{},
			Text: "Change one thing at a time: cable, transceiver, port. Clean optical connectors. Look at the other " +
				"end of the cable: what it sends arrives damaged here; if it is forced to full duplex, let it negotiate.",
			Proof: "Compare damaged frames per gigabyte before and after each change. " +
				"Other ports, the control, must not change."}}
	if share >= damagedMuch {
		f.Severity = evidence.Critical
	}
	return f
}

// dropped finds frames that the port's queue did not hold.
func (k *Keeper) dropped(d *delta) *evidence.Finding {
	lost := d.sum(mib.OutDiscards)
	offered := d.sum(framesOut...) // includes what was dropped (RFC 2863: requested to be transmitted)
	if lost < fewLost {
		return nil
	}
	share := lost / max(offered, lost)
	if share < droppedShare {
		return nil
	}
	busy := use(d, mib.OutBytes)
	f := &evidence.Finding{Code: evidence.SwitchPortDiscards, Severity: evidence.Warning, Where: k.where(d.port),
		Confidence: 0.9, Evidence: append(k.common(d),
			k.fact("frames dropped in the queue out "+over(d.over), lost, "frames", "ifOutDiscards"),
			k.fact("share of the frames", share, "ratio", "of the frames that the port was asked to send")),
		Rejected: []string{}, Remedy: evidence.Remedy{Knobs: []string{}}}
	if in := d.sum(mib.InErrors, mib.OutErrors); in < fewLost {
		f.Rejected = append(f.Rejected, "Not a cable: the port counts "+evidence.Count(in)+" errors.")
	}
	how := "at an unknown speed"
	if d.port.Speed > 0 {
		how = fmt.Sprintf("at %s of %s", evidence.Rate(8*d.rate(mib.OutBytes)), evidence.Rate(d.port.Speed))
	}
	f.Title = fmt.Sprintf("%s drops %s frames out %s, %s of them, %s.", upper(k.at(d.port)), evidence.Count(lost),
		over(d.over), evidence.Percent(share), how)
	if busy >= fullShare {
		f.Remedy.Text = "The port is full: give it more speed, another link of an aggregate, or less traffic. " +
			"A deeper queue only delays the drops."
		f.Remedy.Proof = "Lower the load below four fifths of the speed: the drops end."
	} else {
		f.Rejected = append(f.Rejected, fmt.Sprintf("Not a full port over this time: %s of its speed. Bursts are shorter.",
			evidence.Percent(busy)))
		f.Remedy.Text = "Bursts overrun the queue of the port: traffic comes from faster ports, or from several at once. " +
			"Pace the senders (fq, or a lower rate), give the port the speed of those that feed it, or raise its share of " +
			"the switch's buffer."
		f.Remedy.Proof = "Pace the senders to half the port's speed: the drops end although the amount stays."
	}
	if share >= droppedMuch {
		f.Severity = evidence.Critical
	}
	return f
}

func upper(s string) string { return "P" + s[1:] }

// Attached is a port at which this host hangs, and how that is known.
type Attached struct {
	Switch, Port, Interface string
	Source                  string // LLDP, bridge table, that of a VLAN, or configuration
	// Trunk: the port carries tagged VLANs, and this host is behind it, perhaps among others.
	Trunk bool
}

// lossCodes are verdicts of a host that loses packets at no place of its own.
var lossCodes = []evidence.Code{evidence.PathLoss, evidence.TimeoutsIncast, evidence.Policer}

// Join sets the losses of switches' ports beside the verdict of this host. Where the host loses
// packets at no place of its own, and the port at which it hangs loses some, the loss has a place:
// one finding takes the place of the host's. Ports elsewhere only may be on the path.
func Join(host, ports []evidence.Finding, attached []Attached) []evidence.Finding {
	out := slices.Clone(host)
	at := slices.IndexFunc(host, func(f evidence.Finding) bool { return slices.Contains(lossCodes, f.Code) })
	var losses []evidence.Finding
	for _, p := range ports {
		if slices.Contains(Codes(), p.Code) && severity(p.Severity) >= severity(evidence.Warning) {
			losses = append(losses, p)
		}
	}
	if at < 0 || len(losses) == 0 {
		return append(out, ports...)
	}
	symptom := host[at]
	own := func(p evidence.Finding) *Attached {
		for i, a := range attached {
			if p.Where == "switch "+a.Switch+" "+a.Port {
				return &attached[i]
			}
		}
		return nil
	}
	place := losses[0]
	found := own(place)
	for _, p := range losses {
		if a := own(p); a != nil && (found == nil || found.Trunk && !a.Trunk) {
			place, found = p, a
		}
	}
	f := evidence.Finding{Code: evidence.LossAtSwitch, Where: place.Where, Severity: place.Severity,
		Rejected: append(slices.Clone(symptom.Rejected), "Not at this host: none of its places counts the loss."),
		Evidence: append(slices.Clone(place.Evidence), symptom.Evidence...), Remedy: place.Remedy}
	if found == nil {
		f.Severity, f.Confidence = evidence.Notice, 0.5
		f.Title = "Packets of this host get lost at no place of its own, and a switch may be it: " + place.Title
		f.Rejected = append(f.Rejected, "Not known: whether this port is on the path. LLDP at this "+
			"host would say where it hangs.")
		return append(append(out, f), ports...)
	}
	f.Confidence = evidence.Combine(0.8, place.Confidence/2)
	f.Title = fmt.Sprintf("Packets of this host get lost at the switch where %s hangs: %s", found.Interface, place.Title)
	if found.Trunk {
		f.Title = fmt.Sprintf("Packets of this host get lost at a trunk behind which %s is: %s", found.Interface, place.Title)
	}
	f.Evidence = append(f.Evidence, evidence.Evidence{Name: "port of " + found.Interface,
		Value:  found.Switch + " " + found.Port,
		Source: found.Source})
	f.Causes = []evidence.Code{symptom.Code}
	out = slices.Delete(out, at, at+1)
	return append(append(out, f), ports...)
}

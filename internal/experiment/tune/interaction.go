package tune

import (
	"fmt"
	"math"
	"strings"
)

// Interaction compares the combined effect of the kept changes with what each did in its own trial.
//
// Each trial built on what was kept before it, so the product of the trials is what the set should
// give. Less means that the trials promised too much. The members show why: one worth more beside
// the others than in its trial needs them, and one worth less overlaps with them.
type Interaction struct {
	Product float64 `json:"product_ratio"`          // of the effects of the trials
	Ratio   float64 `json:"interaction_ratio"`      // confirmed effect over the product; 1: they act independently
	Low     float64 `json:"interaction_low_ratio"`  // with the widths of all the intervals
	High    float64 `json:"interaction_high_ratio"` // taken together
	Text    string  `json:"text,omitempty"`         // in a sentence; absent: nothing notable
}

// farFromOne is how far two effects must differ to be worth a sentence, however certain the
// difference is.
const farFromOne = 0.05

// halfWidth returns the half width of the logarithm of an effect; infinite if an end is unknown.
func (e Effect) halfWidth() float64 {
	if !(e.Low > 0) || !(e.High > 0) {
		return math.Inf(1)
	}
	return math.Log(e.High/e.Low) / 2
}

// apart reports whether x differs from y by more than both intervals allow and by enough to be
// worth a sentence.
func apart(x, y Effect) bool {
	gap := math.Abs(math.Log(x.Ratio / y.Ratio))
	return gap > math.Log1p(farFromOne) && gap > math.Hypot(x.halfWidth(), y.halfWidth())
}

// interact compares the confirmed set with its trials. It returns nil for fewer than two changes,
// and if one of them had no trial of its own.
func (s *session) interact() *Interaction {
	if len(s.kept) < 2 || s.out.Final == nil {
		return nil
	}
	product := Effect{Ratio: 1}
	squares := 0.0
	var says []string
	for _, p := range s.kept {
		t, known := inTrials(s.trialsOf(p))
		if !known {
			return nil
		}
		product.Ratio *= t.Ratio
		squares += t.halfWidth() * t.halfWidth()
		for _, a := range s.out.Ablation {
			if a.Knob != p.setting.Knob || a.Side != p.side || a.Reused || !a.Needed || !(a.Ratio > 0) ||
				!apart(a.Effect, t) {
				continue
			}
			word := "it overlaps with them"
			if a.Ratio > t.Ratio {
				word = "it needs them"
			}
			says = append(says, fmt.Sprintf("%s %s gives %s beside the others and gave %s in its trial: %s", p.side,
				p.setting.Knob,
				Effect{Ratio: a.Ratio}, Effect{Ratio: t.Ratio}, word))
		}
	}
	half := math.Sqrt(squares + s.out.Final.halfWidth()*s.out.Final.halfWidth())
	product.Low, product.High = product.Ratio*math.Exp(-math.Sqrt(squares)), product.Ratio*math.Exp(math.Sqrt(squares))
	if apart(*s.out.Final, product) {
		says = append([]string{fmt.Sprintf("together they give %s; their trials promised %s",
			Effect{Ratio: s.out.Final.Ratio}, Effect{Ratio: product.Ratio})}, says...)
	}
	ratio := s.out.Final.Ratio / product.Ratio
	return &Interaction{
		Product: known(product.Ratio), Ratio: known(ratio), Low: known(ratio * math.Exp(-half)),
		High: known(ratio * math.Exp(half)),
		Text: strings.Join(says, "; "),
	}
}

// trialsOf returns the trials that kept a change, oldest first: more than one if its knob was
// turned further.
func (s *session) trialsOf(p placed) []*Trial {
	var all []*Trial
	for i := range s.out.Trials {
		if t := &s.out.Trials[i]; t.Knob == p.setting.Knob && t.Side == p.side && t.Verdict == Kept {
			all = append(all, t)
		}
	}
	return all
}

// inTrials returns what the trials of one change promise: each began with the value that the one
// before had kept, so their effects multiply. It is not known if one had no trial of its own.
func inTrials(trials []*Trial) (effect Effect, known bool) {
	if len(trials) == 1 && !trials[0].Joint && trials[0].Ratio > 0 {
		return trials[0].Effect, true
	}
	ratio, squares := 1.0, 0.0
	for _, t := range trials {
		if t.Joint || !(t.Ratio > 0) {
			return Effect{}, false
		}
		ratio *= t.Ratio
		squares += t.halfWidth() * t.halfWidth()
	}
	half := math.Sqrt(squares)
	return Effect{Ratio: ratio, Low: ratio * math.Exp(-half), High: ratio * math.Exp(half)}, len(trials) > 0
}

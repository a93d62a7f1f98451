package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// Run runs an experiment and returns everything it saw. The outcome is never nil. After an error
// every change has been undone, unless the error says otherwise and Outcome.State is StateTrial. An
// exhausted budget, an unreliable bench and an unconfirmed gain are outcomes, not errors. progress
// may be nil; Run calls it from its own goroutine, and it should return soon.
func Run(ctx context.Context, cfg Config, prober Prober, hosts map[Side]Host, candidates []Candidate,
	progress func(Event)) (*Outcome, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return emptyOutcome(), err
	}
	plan, err := cfg.plan()
	if err != nil {
		return emptyOutcome(), err
	}
	return run(ctx, cfg, plan, prober, hosts, candidates, progress)
}

// session is one experiment in progress. One goroutine uses it. applied is the actual state of the
// hosts, kept is what the experiment wants to keep; switchTo makes applied equal to an arm.
type session struct {
	cfg      Config
	plan     *stats.Boundary
	prober   Prober
	hosts    map[Side]Host
	progress func(Event)
	random   *rand.Rand
	out      *Outcome

	started   time.Time
	measuring time.Duration // spent in the prober
	changing  time.Duration // spent in applying and undoing settings
	changed   int           // number of settings applied or undone

	queue    []Candidate
	history  map[target]attempts
	keeps    int // candidates kept so far
	measured int // trials measured

	// resigned: this comparison counts disturbed segments whose loss is bounded, because no try was
	// clean.
	resigned bool

	applied []applied // in force now, oldest first
	kept    arm
	vetoed  bool    // the last trial gained but a guard-rail forbade it
	joint   int     // members of kept that were proven only together; 0 if each had a trial of its own
	lastWin *answer // of the trial that kept the newest member of kept; nil if it was kept together with others

	pairNoise float64 // robust standard deviation of ln(B/A) of one pair without an effect
	spread    float64 // the same including outliers (stats.SpreadAround)
	threshold float64 // ln(1 + effect needed)
	promise   float64 // ln(1 + effect found nine times in ten)
	held      float64 // what disturbances can have cost a segment of the pilot, as a logarithm; 0: nothing
	quantile  float64 // of the normal distribution at the confidence, for the search of levels only
}

// target is what a candidate turns, at any level.
type target struct {
	side Side
	knob knob.ID
}

// attempts is the history of a target.
type attempts struct {
	count   int
	verdict Verdict
	keeps   int // session.keeps after its last trial
	levels  []knob.Value
}

// maxKeepsOfOne bounds how often the experiment turns one knob further: a verdict under a narrow
// limit cannot know how far the next one is.
//
// Levels go up to four times the target of their verdict, so four keeps span more than two orders
// of magnitude; a knob that needs more points to a wrong verdict.
const maxKeepsOfOne = 4

// again reports whether a target that was tried before deserves another trial, after keeps
// candidates were kept.
func (a attempts) again(c Candidate, keeps int) bool {
	switch a.verdict {
	case RevertedUnproven:
		// Each keep changes what limits, so a candidate that was unproven under the old limit
		// deserves one more trial.
		return a.count == 1 && a.keeps < keeps
	case Kept:
		// It helped, and the new verdict asks for a level that was not tried.
		return a.count < maxKeepsOfOne &&
			slices.ContainsFunc(c.Levels, func(v knob.Value) bool { return !slices.Contains(a.levels, v) })
	}
	return false
}

// emptyOutcome returns an outcome with empty lists instead of nil ones: in JSON a promised list is
// [] and never null.
func emptyOutcome() *Outcome {
	return &Outcome{Trials: []Trial{}, Kept: []Change{}, Segments: []Segment{}, State: StateUndone}
}

func run(ctx context.Context, cfg Config, plan *stats.Boundary, prober Prober, hosts map[Side]Host,
	candidates []Candidate, progress func(Event)) (*Outcome, error) {
	s := &session{
		cfg: cfg, plan: plan, prober: prober, hosts: hosts, progress: progress,
		// The second word of the generator's state is the name of the program in ASCII; any
		// constant would do, as long as it never changes and a seed keeps meaning the same order.
		random:   rand.New(rand.NewPCG(cfg.Seed, 0x6c696e6572617465)),
		out:      emptyOutcome(),
		started:  cfg.Now(),
		queue:    slices.Clone(candidates),
		history:  map[target]attempts{},
		quantile: normalQuantile((1 + cfg.Confidence) / 2),
	}
	s.out.Design = designOf(cfg)
	err := s.experiment(ctx)
	if errors.Is(err, errBudget) {
		s.out.Partial = true
		s.revoke(s.outOfTime())
		err = nil
	}
	if err != nil {
		s.revoke("the experiment was broken off: " + err.Error())
	}
	// Every change is committed, held or undone here: nothing stays by accident.
	if s.out.State == StateUndone {
		if undo := s.unwind(ctx); undo != nil {
			s.out.State = StateTrial
			err = errors.Join(err, fmt.Errorf("take trial changes back: %w", undo))
		}
	}
	s.out.PossiblyCommitted = nil
	if s.out.State != StateCommitted {
		s.out.PossiblyCommitted = s.askedToStay()
	}
	s.weighDiscards()
	s.emit(Event{Kind: EventState, State: s.out.State, Text: s.conclusion()})
	return s.out, err
}

// experiment runs the phases. The state stays undone until the kept set is committed or held.
//
// The order of the phases is a promise to the reader of the record: nothing is tried before the
// bench has been tested against itself, and nothing stays before fresh pairs have proven the whole
// set. The effect of a chosen change is on average too high in the trial that chose it, because it
// was chosen for being high; the figure to quote is that of the confirmation.
func (s *session) experiment(ctx context.Context) error {
	if ok, err := s.pilot(ctx); err != nil || !ok {
		return err
	}
	if err := s.forward(ctx); err != nil {
		return err
	}
	if len(s.kept) == 0 && !s.out.Partial {
		if err := s.together(ctx); err != nil {
			return err
		}
	}
	if len(s.kept) == 0 {
		// Nothing is changed, so the ratio is one by definition.
		s.out.Final = &Effect{Ratio: 1, Low: 1, High: 1}
		if n := s.out.DisturbedTrials; n > 0 {
			// What could not be measured may help on a quiet bench, so this is no verdict on it.
			s.out.Unreliable = true
			s.conclude(fmt.Sprintf("no candidate was proven to help, and the bench was too disturbed for %d of %s",
				n, unit.Counted(len(s.out.Trials), "trial")))
			return nil
		}
		s.conclude("no candidate was proven to help")
		return nil
	}
	confirmed, err := s.confirm(ctx, s.kept, 0)
	if err != nil {
		return err
	}
	s.out.Final, s.out.Guards, s.out.Profiles = &confirmed.effect, confirmed.guards, confirmed.profiles
	if confirmed.decision != better {
		s.revoke("the kept set was not confirmed against the original: " + confirmed.reason)
		return nil
	}
	if confirmed, err := s.ablate(ctx); err != nil {
		return err
	} else if !confirmed {
		s.revoke("what remained of the kept set was not confirmed against the original: " + s.out.Final.String())
		return nil
	}
	if s.out.Interaction = s.interact(); s.out.Interaction != nil && s.out.Interaction.Text != "" {
		s.warn("the changes do not act independently: %s", s.out.Interaction.Text)
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if s.cfg.Soak > 0 && s.out.State == StateCommitted {
		return s.soak(ctx)
	}
	return nil
}

// pilot compares the original with itself. It returns false if the bench cannot be trusted.
//
// Only the bench can cause a difference in the pilot: a governor that speeds up, a cache that warms
// up, a neighbour. The same cause would also move the trials, so a second failure ends the run
// before any change.
func (s *session) pilot(ctx context.Context) (bool, error) {
	s.emit(Event{Kind: EventPhase, Phase: PhasePilot, Pairs: s.cfg.PilotPairs,
		Text: fmt.Sprintf("measure the noise: %d pairs without any change", s.cfg.PilotPairs)})
	p := &Pilot{}
	var ratios []float64
	for p.Attempts = 1; ; p.Attempts++ {
		sound := false
		var err error
		ratios, sound, err = s.pilotAttempt(ctx, p)
		if disturbed := (*disturbedError)(nil); errors.As(err, &disturbed) {
			s.out.Unreliable, s.out.Reason = true, "the bench is too disturbed to measure: "+disturbed.Error()
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.out.Pilot = p
		if sound {
			break
		}
		// One bench in thirty fails by chance; two failures in a row are not chance.
		s.warn("the pilot saw a difference although nothing was changed: %s", p.Effect)
		if p.Attempts == 2 {
			s.out.Unreliable, s.out.Reason = true,
				fmt.Sprintf("the bench shows differences although nothing was changed: %s", p.Effect)
			return false, nil
		}
	}
	enough, err := s.fit(p, ratios)
	if err != nil {
		return false, err
	}
	text := fmt.Sprintf("noise of a pair %s; gains of %s or more are found nine times in ten within %d pairs (%s)",
		unit.FormatPercent(p.PairNoise),
		unit.FormatPercent(p.ResolvableEffect), s.plan.MaxPairs(),
		unit.FormatSeconds((s.segmentTime() * time.Duration(2*s.plan.MaxPairs())).Seconds()))
	s.emit(Event{Kind: EventResolve, Phase: PhasePilot, Effect: p.Effect, Text: text})
	return enough, nil
}

// pilotAttempt measures the pairs of one pilot: the planned ones, and as many again if they show
// much noise.
func (s *session) pilotAttempt(ctx context.Context, p *Pilot) (ratios []float64, sound bool, err error) {
	s.resigned = false
	var got pairs
	for n := s.cfg.PilotPairs; ; n *= 2 {
		ratios, err := s.pilotPairs(ctx, p.Attempts-1, n, &got)
		if err != nil {
			return nil, false, err
		}
		sound := s.weighPilot(p, got, ratios)
		if !s.noisy(len(ratios)) {
			return ratios, sound, nil
		}
		s.emit(Event{Kind: EventPhase, Phase: PhasePilot, Pairs: 2 * n,
			Text: fmt.Sprintf("noise of a pair %s: measure it with %d more pairs", unit.FormatPercent(p.PairNoise), n)})
	}
}

// weighPilot evaluates the pairs of a pilot and reports whether the bench shows no difference where
// there is none.
func (s *session) weighPilot(p *Pilot, got pairs, ratios []float64) (sound bool) {
	s.held = -stats.Mean(stats.PairedLogRatio(got.whole(0), got.a))
	interval := stats.SignedRank(ratios, s.cfg.Confidence)
	p.Effect = effectOf(len(ratios), interval)
	s.resolve(p, ratios)
	return interval.Low <= s.useful() && interval.High >= -s.useful()
}

// pilotPairs measures the pairs of an attempt up to a number, and updates the baseline.
func (s *session) pilotPairs(ctx context.Context, attempt, upTo int, got *pairs) ([]float64, error) {
	q := question{phase: PhasePilot, trial: attempt, within: s.cfg.Budget}
	for n := len(got.a); n < upTo; n++ {
		if err := s.pair(ctx, q, n, upTo, got); err != nil {
			return nil, err
		}
	}
	s.out.Baseline = &Baseline{Objective: stats.Median(slices.Concat(got.a, got.b)), Segments: 2 * len(got.a)}
	for name, both := range got.guards {
		if s.out.Baseline.Guards == nil {
			s.out.Baseline.Guards = map[string]float64{}
		}
		s.out.Baseline.Guards[name] = stats.Median(slices.Concat(both[0], both[1]))
	}
	return stats.PairedLogRatio(got.a, got.b), nil
}

// forward tries the candidates in their order, each on top of those kept before.
//
// It is greedy and follows the order of the findings: the diagnosis ranks the first candidate
// highest, and each keep changes what the next ones are worth. Trying all subsets would need 2^n
// comparisons.
func (s *session) forward(ctx context.Context) error {
	for len(s.queue) > 0 {
		c := s.queue[0]
		s.queue = s.queue[1:]
		t, err := s.attempt(ctx, c)
		// A gain that costs too much at one level may cost less at a smaller one.
		for smaller := below(t); err == nil && s.vetoed && len(smaller) > 0; smaller = smaller[1:] {
			c.Levels = smaller[:1]
			t, err = s.attempt(ctx, c)
		}
		if errors.Is(err, errBudget) {
			s.out.Partial = true
			s.out.Reason = fmt.Sprintf("the time budget ran out with %s left", unit.Counted(len(s.queue)+1, "candidate"))
			return nil
		}
		if err != nil {
			return err
		}
		if t.Verdict == Kept {
			if err := s.refill(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt runs one trial and records it.
func (s *session) attempt(ctx context.Context, c Candidate) (Trial, error) {
	t, err := s.trial(ctx, c)
	s.out.Trials = append(s.out.Trials, t)
	if t.Verdict == Kept {
		s.keeps++
	}
	key := target{c.Side, c.Knob}
	past := s.history[key]
	s.history[key] = attempts{
		count: past.count + 1, verdict: t.Verdict, keeps: s.keeps,
		levels: append(slices.Clone(past.levels), c.Levels...),
	}
	s.emit(Event{
		Kind: EventVerdict, Phase: PhaseTrial, Knob: t.Knob, Side: t.Side, From: t.From, To: t.To, Effect: t.Effect,
		Verdict: t.Verdict,
		Text:    fmt.Sprintf("%s %s: %s: %s", t.Side, t.Knob, t.Verdict, t.Reason),
	})
	return t, err
}

// below returns the levels smaller than the one on trial, largest first.
func below(t Trial) []knob.Value {
	var out []knob.Value
	for _, l := range t.Levels {
		if l.Chosen {
			break
		}
		if l.Refused == "" {
			out = append(out, l.Value)
		}
	}
	slices.Reverse(out)
	return out
}

// refill asks for new candidates after a keep.
//
// The hosts must have the kept set in force when the caller judges again, because the next verdict
// is about that path and not about the arm measured last.
func (s *session) refill(ctx context.Context) error {
	if s.cfg.Refill == nil {
		return nil
	}
	if err := s.switchTo(ctx, s.kept); err != nil {
		return err
	}
	fresh, enough, err := s.cfg.Refill(ctx, s.keptList())
	if err != nil {
		return fmt.Errorf("look for new candidates: %w", err)
	}
	if enough {
		if len(s.queue) > 0 {
			s.emit(Event{Kind: EventPhase, Phase: PhaseTrial,
				Text: fmt.Sprintf("%s not tried: nothing more can be gained", unit.Counted(len(s.queue), "candidate"))})
		}
		s.queue = nil
		return nil
	}
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(c Candidate) bool {
		past, tried := s.history[target{c.Side, c.Knob}]
		return tried && !past.again(c, s.keeps)
	})
	// New levels for a waiting knob replace the old ones.
	s.queue = slices.DeleteFunc(s.queue, func(old Candidate) bool {
		return slices.ContainsFunc(fresh, func(c Candidate) bool { return c.Side == old.Side && c.Knob == old.Knob })
	})
	s.queue = append(fresh, s.queue...)
	return nil
}

// revoke marks every kept trial as not lasting.
//
// The verdict of such a trial is "not proven" and never "worse": its own trial proved it, and only
// the whole set failed.
func (s *session) revoke(reason string) {
	s.out.RolledBack = s.out.RolledBack || len(s.kept) > 0
	s.kept = nil
	s.out.Kept = []Change{}
	s.out.State = StateUndone
	s.conclude(reason)
	for i := range s.out.Trials {
		if t := &s.out.Trials[i]; t.Verdict == Kept {
			t.Verdict = RevertedUnproven
			t.Reason += "; taken back: " + reason
		}
	}
}

// conclude sets the reason why the run ended as it did, after the reason why it ended early.
func (s *session) conclude(reason string) {
	if s.out.Partial && s.out.Reason != "" {
		reason = s.out.Reason + "; " + reason
	}
	s.out.Reason = reason
}

// conclusion returns the last line of the log.
func (s *session) conclusion() string {
	switch s.out.State {
	case StateCommitted:
		return fmt.Sprintf("committed %s: %s", changes(len(s.out.Kept)), s.out.Final)
	case StateTrial:
		if len(s.out.Kept) > 0 {
			return fmt.Sprintf("confirmed and held on trial %s: %s", changes(len(s.out.Kept)), s.out.Final)
		}
		if n := len(s.out.PossiblyCommitted); n > 0 {
			return fmt.Sprintf("%s could not be undone, and may stay: the host was asked to commit", changes(n))
		}
		return "some trial changes could not be undone; the guard of their host will revert them"
	}
	if s.out.Reason == "" {
		return "everything is as it was"
	}
	return "everything is as it was: " + s.out.Reason
}

// normalQuantile returns Φ⁻¹(p). Only the search for levels uses it: no verdict assumes a normal
// distribution.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// changes returns a number of changes in words.
func changes(n int) string { return unit.Counted(n, "change") }

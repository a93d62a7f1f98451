package profile

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/linerate/linerate/internal/base/sorting"
)

// ledger has the accounts on which the samples of a builder are billed.
type ledger struct {
	b                      *Builder
	slices                 int
	landing                map[int]int64 // see Builder.landings
	busy                   *tally
	stages, work, contexts map[string]*tally
	functions              map[int]*tally // own samples
	moved, inclusive       map[int]uint64
	processes              map[string]*[2]uint64 // own and borrowed
	merged                 map[string]*billed
	stacks                 []*billed // in order of their first sample
}

// billed is a stack as it is shown: after a move two stacks may be one.
type billed struct {
	Stack
	frames []int
}

func newLedger(b *Builder, slices int) *ledger {
	return &ledger{b: b, slices: slices, landing: b.landings(), busy: newTally(slices),
		stages: make(map[string]*tally), work: make(map[string]*tally), contexts: make(map[string]*tally),
		functions: make(map[int]*tally), moved: make(map[int]uint64), inclusive: make(map[int]uint64),
		processes: make(map[string]*[2]uint64), merged: make(map[string]*billed)}
}

// bill enters one stack in all accounts; an idle one only in the sum of all samples.
func (l *ledger) bill(p *Profile, c *counted) {
	p.Samples += c.total
	frames, moved := l.move(c)
	leaf := l.b.frames[frames[0]]
	leafStage := l.b.stageOf(leaf)
	if leafStage == stageIdle {
		return
	}
	s := billed{Stack{Context: l.b.context(frames), Stage: l.b.place(frames), Work: workOf(leafStage), Moved: moved,
		Samples: c.total}, frames}
	l.sums(p, leaf.Kind, s)
	for slice, count := range c.bySlice {
		l.busy.add(slice, count)
		for _, t := range []*tally{account(l.stages, s.Stage, l.slices), account(l.work, s.Work, l.slices),
			account(l.contexts, s.Context, l.slices), account(l.functions, frames[0], l.slices)} {
			t.add(slice, count)
		}
	}
	for i, f := range frames {
		if !slices.Contains(frames[:i], f) { // a recursion counts once
			l.inclusive[f] += c.total
		}
	}
	l.borrow(s.Context, c.processes)
	l.keep(s)
}

// move returns the frames that a stack is billed to: without the instruction that allows interrupts
// again, where a sample of a timer stands for what is before it.
func (l *ledger) move(c *counted) (frames []int, moved bool) {
	leaf := l.b.frames[c.frames[0]]
	if l.b.timer && len(c.frames) > 1 && leaf.Kind == KernelFrame &&
		(unlocks[leaf.Name] || c.offset >= 0 && l.landing[c.frames[0]] == c.offset) {
		return c.frames[1:], true
	}
	return c.frames, false
}

// sums adds a stack to the totals of the profile.
func (l *ledger) sums(p *Profile, leaf Kind, s billed) {
	p.Busy += s.Samples
	if leaf == KernelFrame || leaf == NamelessFrame {
		p.Kernel += s.Samples
		if leaf == NamelessFrame {
			p.Unresolved += s.Samples
		}
		if s.Stage == StageOther {
			p.Unclassed += s.Samples
		}
	}
	if s.Moved {
		p.Moved += s.Samples
		l.moved[s.frames[0]] += s.Samples
	}
}

// account returns the tally of a key, a new one where there is none.
func account[K comparable](all map[K]*tally, key K, slices int) *tally {
	t := all[key]
	if t == nil {
		t = newTally(slices)
		all[key] = t
	}
	return t
}

// borrow bills processes: time in interrupts is not their own.
func (l *ledger) borrow(context string, by map[string]uint64) {
	borrowed := 0
	if context == ContextSoftIRQ || context == ContextInterrupt {
		borrowed = 1
	}
	for process, count := range by {
		if l.processes[process] == nil {
			l.processes[process] = &[2]uint64{}
		}
		l.processes[process][borrowed] += count
	}
}

// keep adds a stack to those that are shown.
func (l *ledger) keep(s billed) {
	key := s.Context + strconv.FormatBool(s.Moved)
	for _, f := range s.frames {
		key += "," + strconv.Itoa(f)
	}
	if m := l.merged[key]; m != nil {
		m.Samples += s.Samples
		return
	}
	l.merged[key] = &s
	l.stacks = append(l.stacks, &s)
}

// functionRows adds the table of functions, most samples first, and returns the number of each
// frame in it.
func (l *ledger) functionRows(p *Profile, e estimator) (number map[int]int) {
	heaviest := slices.Collect(maps.Keys(l.inclusive))
	sorting.Func(heaviest, func(x, y int) int {
		return cmp.Or(cmp.Compare(l.functions[y].sum(), l.functions[x].sum()), cmp.Compare(l.inclusive[y], l.inclusive[x]),
			cmp.Compare(l.b.frames[x].Name, l.b.frames[y].Name), cmp.Compare(x, y))
	})
	number = make(map[int]int)
	for _, f := range heaviest {
		frame := l.b.frames[f]
		own := l.functions[f]
		if own == nil { // it is only a caller
			own = newTally(l.slices)
		}
		row := e.row(frame.Name, own)
		row.Stage, row.Module, row.Moved, row.Inclusive = l.b.stageOf(frame), frame.Module, l.moved[f], l.inclusive[f]
		number[f] = len(p.Functions)
		p.Functions = append(p.Functions, row)
	}
	return number
}

// stackRows adds the stacks, most samples first.
func (l *ledger) stackRows(p *Profile, number map[int]int) {
	for _, s := range l.stacks {
		for _, f := range s.frames {
			s.Functions = append(s.Functions, number[f])
		}
		p.Stacks = append(p.Stacks, s.Stack)
	}
	sorting.StableFunc(p.Stacks, func(x, y Stack) int {
		return cmp.Or(cmp.Compare(y.Samples, x.Samples), slices.Compare(x.Functions, y.Functions))
	})
}

// processRows adds the processes that have a name, the busiest first.
func (l *ledger) processRows(p *Profile, sampleSeconds float64) {
	for name, t := range l.processes {
		if name != "" {
			p.Processes = append(p.Processes, Process{Name: name, Own: t[0], Borrowed: t[1],
				OwnS: float64(t[0]) * sampleSeconds, BorrowS: float64(t[1]) * sampleSeconds})
		}
	}
	sorting.Func(p.Processes, func(x, y Process) int {
		return cmp.Or(cmp.Compare(y.Own+y.Borrowed, x.Own+x.Borrowed), cmp.Compare(x.Name, y.Name))
	})
}

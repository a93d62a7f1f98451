package profile

import (
	"cmp"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
)

// spins are the functions in which a CPU waits for a lock without doing anything else. Functions
// that take a free lock are none of them.
var spins = map[string]bool{
	"native_queued_spin_lock_slowpath": true, "__pv_queued_spin_lock_slowpath": true,
	"queued_spin_lock_slowpath": true, "queued_read_lock_slowpath": true, "queued_write_lock_slowpath": true,
	"osq_lock": true, "mutex_spin_on_owner": true, "rwsem_spin_on_owner": true, "rwsem_optimistic_spin": true,
	"_mtx_lock_sleep": true, "__mtx_lock_sleep": true, "mutex_vector_enter": true,
}

// Spinning is the share of the busy samples in which a CPU waited for a lock.
func (p *Profile) Spinning() Row {
	return p.part("waiting for locks", func(s Stack) bool { return spins[p.Functions[s.Functions[0]].Name] })
}

// PacketWork returns what CPUs did on the network path alone, most samples first: a share of memory
// is that of packets then, without the page faults of programs. Shares are of all busy samples.
func (p *Profile) PacketWork() []Row {
	var all []Row
	for _, w := range p.Work {
		r := p.part(w.Name, func(s Stack) bool { return s.Work == w.Name && onPath(s.Stage) })
		if r.Samples > 0 {
			all = append(all, r)
		}
	}
	sorting.Func(all, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Samples, x.Samples), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// StageShare returns the share of several stages together.
func (p *Profile) StageShare(stages ...string) Row {
	return p.part(stages[0], func(s Stack) bool { return slices.Contains(stages, s.Stage) })
}

// part is the row of some stacks. Their slices of time are not kept, so it takes the largest
// dispersion of a stage or kind of work that has as many samples.
func (p *Profile) part(name string, in func(Stack) bool) Row {
	r := Row{Name: name, Dispersion: 1}
	for _, s := range p.Stacks {
		if in(s) {
			r.Samples += s.Samples
		}
	}
	for _, rows := range [][]Row{p.Stages, p.Work} {
		for _, w := range rows {
			if 2*w.Samples >= r.Samples && w.Samples <= 2*r.Samples {
				r.Dispersion = max(r.Dispersion, w.Dispersion)
			}
		}
	}
	if p.Busy > 0 {
		r.Share = float64(r.Samples) / float64(p.Busy)
		r.ShareLow, r.ShareHigh = wilson(float64(r.Samples)/r.Dispersion, float64(p.Busy)/r.Dispersion,
			quantileT(p.Slices-1))
	}
	return r
}

package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/kernel/bpf"
	"github.com/linerate/linerate/internal/profile"
)

// Exact counts softirqs and waits for locks for a time, exactly, and adds them to a profile. It
// comes after the samples, because it costs about 100 ns for each softirq. A kernel that does not
// allow or have it leaves a warning and no error.
//
// It also notes which threads waited for a CPU; anonymous leaves out all but those of the kernel
// that work for packets.
func Exact(ctx context.Context, p *profile.Profile, d time.Duration, anonymous bool) {
	if err := exact(ctx, p, d, anonymous); err != nil {
		p.Warnings = append(p.Warnings, exactReason(err))
	}
}

func exactReason(err error) string {
	switch {
	case errors.Is(err, bpf.ErrNotSupported):
		return fmt.Sprintf("softirqs and lock waits: %v", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("softirqs and lock waits: %v; counting them needs root, or cap_bpf and cap_perfmon", err)
	}
	return fmt.Sprintf("softirqs and lock waits: %v", err)
}

func exact(ctx context.Context, p *profile.Profile, d time.Duration, anonymous bool) error {
	w, err := bpf.Watch()
	if err != nil {
		return err
	}
	defer w.Close()
	threads := readThreads(anonymous)
	began := time.Now()
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	took := time.Since(began).Seconds()
	counts, err := w.Read()
	if err != nil {
		return err
	}
	e := &profile.Exact{Duration: took, Locks: w.Locks(), RunQueue: waited(threads, readThreads(anonymous), took)}
	for _, s := range counts.SoftIRQs {
		one := profile.SoftIRQTime{CPU: s.CPU, Name: s.Name, Runs: s.Runs, Seconds: float64(s.Nanos) / 1e9,
			Ratio: float64(s.Nanos) / 1e9 / took}
		if s.Delayed > 0 {
			one.Delay = float64(s.DelayNanos) / 1e9 / float64(s.Delayed)
		}
		e.SoftIRQs = append(e.SoftIRQs, one)
	}
	sorting.Func(e.SoftIRQs, func(x, y profile.SoftIRQTime) int {
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.CPU, y.CPU), cmp.Compare(x.Name, y.Name))
	})
	if counts.Runs > 0 {
		e.CostSeconds = float64(counts.RunNanos) / 1e9
	}
	if len(counts.Waits) > 0 {
		kernel, err := openFunctions()
		if err != nil {
			return err
		}
		defer kernel.close()
		e.Waits = waits(counts.Waits, kernel, took)
	}
	p.Exact = e
	return nil
}

// waits names where tasks waited. Places with the same names are one: a function has several calls.
func waits(all []bpf.Wait, kernel *functions, took float64) []profile.LockWait {
	type place struct{ kind, function, path string }
	index := make(map[place]int)
	var out []profile.LockWait
	for _, w := range all {
		var names []string
		for i, address := range w.Stack {
			if i > 0 {
				address--
			}
			name, _, _, ok := kernel.resolve(address)
			if !ok {
				name = "?"
			}
			names = append(names, profile.Plain(name))
		}
		at := profile.LockPlace(names)
		function, path := "no stack", ""
		if len(at) > 0 {
			function = at[0]
			for i, name := range at[1:min(len(at), 6)] {
				if i > 0 {
					path += " < "
				}
				path += name
			}
		}
		key := place{w.Kind, function, path}
		i, known := index[key]
		if !known {
			i = len(out)
			index[key] = i
			out = append(out, profile.LockWait{Kind: w.Kind, Function: function, Callers: path,
				Stage: profile.StageOfPath(at)})
		}
		out[i].Waits += w.Waits
		out[i].Seconds += float64(w.Nanos) / 1e9
	}
	for i := range out {
		out[i].PerSecond, out[i].Ratio = float64(out[i].Waits)/took, out[i].Seconds/took
	}
	sorting.Func(out, func(x, y profile.LockWait) int {
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Function, y.Function),
			cmp.Compare(x.Callers, y.Callers))
	})
	return out
}

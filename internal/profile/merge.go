package profile

// Merge returns one profile of several runs of one event on one host. Each run is one slice of
// time, so that its intervals rest on the variance between runs; stacks keep the stage that they
// had. Samples whose stacks were left out (Trim) count under their leaf alone. It returns nil
// without runs.
func Merge(runs []*Profile) *Profile {
	if len(runs) == 0 {
		return nil
	}
	b := NewBuilder(runs[0].Event, false) // samples were moved when the runs were billed
	w := Window{Slices: len(runs)}
	if runs[0].Timer {
		w.SampleSeconds = float64(runs[0].Period) / 1e9
	}
	counted := true
	for i, p := range runs {
		frames := make([]int, len(p.Functions))
		for j, f := range p.Functions {
			frames[j] = b.Frame(Frame{Name: f.Name, Module: f.Module, Kind: kindOf(f)})
		}
		rest := make([]uint64, len(p.Functions)) // own samples in stacks that are left out
		for j, f := range p.Functions {
			rest[j] = f.Samples
		}
		for _, s := range p.Stacks {
			one := Seen{Offset: -1, Slice: i, Count: s.Samples}
			for _, f := range s.Functions {
				one.Frames = append(one.Frames, frames[f])
			}
			rest[s.Functions[0]] -= min(s.Samples, rest[s.Functions[0]])
			b.Add(one)
		}
		for j, n := range rest {
			b.Add(Seen{Frames: frames[j : j+1], Offset: -1, Slice: i, Count: n})
		}
		w.BusySeconds += p.BusySeconds
		if p.PacketsTotal == nil || p.BytesTotal == nil {
			counted = false
			continue
		}
		w.PacketsBySlice = append(w.PacketsBySlice, float64(*p.PacketsTotal))
		w.BytesBySlice = append(w.BytesBySlice, float64(*p.BytesTotal))
	}
	if !counted {
		w.PacketsBySlice, w.BytesBySlice = nil, nil
	}
	out := b.Finish(w)
	out.Timer, out.Period, out.RatePerSecond, out.CPUs = runs[0].Timer, runs[0].Period, runs[0].RatePerSecond, runs[0].CPUs
	out.Samples = 0
	for _, p := range runs {
		out.Samples, out.Moved, out.Lost = out.Samples+p.Samples, out.Moved+p.Moved, out.Lost+p.Lost
		out.Throttled, out.StacksCut = out.Throttled+p.Throttled, out.StacksCut+p.StacksCut
		out.Duration += p.Duration
	}
	if counted {
		packets, bytes := uint64(sum(w.PacketsBySlice)), uint64(sum(w.BytesBySlice))
		out.PacketsTotal, out.BytesTotal = &packets, &bytes
	}
	return out
}

// kindOf returns what a function of a profile belongs to.
func kindOf(f Row) Kind {
	switch f.Stage {
	case StageUser:
		return UserFrame
	case StageGuest:
		return GuestFrame
	case StageUnknown:
		return NamelessFrame
	}
	return KernelFrame
}

package profile

import (
	"encoding/binary"
	"slices"
)

// Frame is one function of a stack.
type Frame struct {
	Name   string
	Module string // empty: the kernel proper
	Kind   Kind
	// Offset is how far into the function a leaf was; −1: not known.
	Offset int64
}

// Kind is what a frame belongs to.
type Kind uint8

// The kinds of frames.
const (
	KernelFrame Kind = iota
	UserFrame
	GuestFrame
	NamelessFrame // a kernel address without a name
)

// Seen is one sample, or several of the same stack.
type Seen struct {
	Frames  []int // from Builder.Frame, leaf first; none is allowed to be empty
	Offset  int64 // into the leaf; −1: not known
	Slice   int   // of time, from 0
	Process string
	Count   uint64
}

// Builder counts stacks. It holds at most maxStacks different ones, so that its memory does not
// grow with time; further ones count under their leaf alone. It is for one goroutine at a time.
type Builder struct {
	event  string
	timer  bool
	frames []Frame
	index  map[Frame]int
	stacks map[string]*counted
	order  []*counted
	slices int
	cut    uint64
	key    []byte
}

// maxStacks bounds the memory of a profile: about 100 MB at the longest stacks.
const maxStacks = 100_000

// counted is a stack and its samples by slice of time.
type counted struct {
	frames    []int
	offset    int64
	bySlice   map[int]uint64
	total     uint64
	processes map[string]uint64
}

// NewBuilder returns an empty builder for an event. Timer reports that the event cannot see code
// with interrupts off, so that samples where interrupts are allowed again are moved to the caller.
func NewBuilder(event string, timer bool) *Builder {
	return &Builder{event: event, timer: timer, index: make(map[Frame]int), stacks: make(map[string]*counted)}
}

// Frame returns the number of a frame. Its offset does not count.
func (b *Builder) Frame(f Frame) int {
	f.Offset = 0
	f.Name = Plain(f.Name)
	n, known := b.index[f]
	if !known {
		n = len(b.frames)
		b.frames = append(b.frames, f)
		b.index[f] = n
	}
	return n
}

// Add counts a stack. A stack without frames is ignored.
func (b *Builder) Add(s Seen) {
	if len(s.Frames) == 0 || s.Count == 0 {
		return
	}
	// Only where a leaf may be an instruction that allows interrupts does its offset matter.
	if leaf := b.frames[s.Frames[0]]; !b.timer || leaf.Kind != KernelFrame || !enables[leaf.Name] {
		s.Offset = -1
	}
	c := b.stack(s)
	c.bySlice[s.Slice] += s.Count
	c.total += s.Count
	c.processes[s.Process] += s.Count
	b.slices = max(b.slices, s.Slice+1)
}

func (b *Builder) stack(s Seen) *counted {
	b.key = binary.AppendVarint(b.key[:0], s.Offset)
	for _, f := range s.Frames {
		b.key = binary.AppendUvarint(b.key, uint64(f))
	}
	if c, known := b.stacks[string(b.key)]; known {
		return c
	}
	if len(b.stacks) >= maxStacks && len(s.Frames) > 1 {
		b.cut += s.Count
		s.Frames = s.Frames[:1]
		return b.stack(s)
	}
	c := &counted{frames: slices.Clone(s.Frames), offset: s.Offset, bySlice: make(map[int]uint64, 1),
		processes: make(map[string]uint64, 1)}
	b.stacks[string(b.key)] = c
	b.order = append(b.order, c)
	return c
}

// Window is what was counted beside the samples. The zero value is a window of which nothing but
// the samples is known.
type Window struct {
	// SampleSeconds is the processor time that one sample stands for; 0: the event has no time.
	SampleSeconds float64
	// BusySeconds is the processor time of all busy samples together, where SampleSeconds is not
	// known: what the kernel accounted.
	BusySeconds float64
	// EventsPerSample is what one sample stands for in units of the event; for events without time.
	EventsPerSample float64
	// Packets and bytes by slice of time; nil: not counted.
	PacketsBySlice, BytesBySlice []float64
	// Slices is how many slices of time were sampled; 0: as far as samples reach.
	Slices int
}

// Finish bills every stack and returns the tables. The builder can be used further.
func (b *Builder) Finish(w Window) *Profile {
	p := &Profile{Event: b.event, Timer: b.timer, StacksCut: b.cut, Slices: max(b.slices, w.Slices, 1)}
	l := newLedger(b, p.Slices)
	for _, c := range b.order {
		l.bill(p, c)
	}
	if w.SampleSeconds == 0 && p.Busy > 0 {
		w.SampleSeconds = w.BusySeconds / float64(p.Busy)
	}
	if w.SampleSeconds > 0 {
		p.BusySeconds = w.SampleSeconds * float64(p.Busy)
	}
	e := estimator{w: w, busy: l.busy}
	p.Stages, p.Work, p.Contexts = e.rows(l.stages), e.rows(l.work), e.rows(l.contexts)
	number := l.functionRows(p, e)
	l.stackRows(p, number)
	l.processRows(p, w.SampleSeconds)
	return p
}

// landings returns, for each function that allows interrupts at one instruction, the offset where
// that shows.
func (b *Builder) landings() map[int]int64 {
	byOffset := make(map[int]map[int64]uint64)
	for _, c := range b.order {
		if c.offset < 0 {
			continue
		}
		f := c.frames[0]
		if byOffset[f] == nil {
			byOffset[f] = make(map[int64]uint64)
		}
		byOffset[f][c.offset] += c.total
	}
	found := make(map[int]int64)
	for f, offsets := range byOffset {
		var all, most uint64
		at := int64(-1)
		for offset, n := range offsets {
			all += n
			if n > most || n == most && offset < at {
				most, at = n, offset
			}
		}
		if most >= enableLeast && float64(most) >= enableShare*float64(all) {
			found[f] = at
		}
	}
	return found
}

// stageOf returns the row of the table for a frame.
func (b *Builder) stageOf(f Frame) string {
	switch f.Kind {
	case UserFrame:
		return StageUser
	case GuestFrame:
		return StageGuest
	case NamelessFrame:
		return StageUnknown
	}
	stage := StageOf(f.Name)
	if stage == StageOther && f.Module == "bpf" {
		return stageBPF
	}
	return stage
}

// place returns the nearest stage of the network path, or what the leaf does outside of it.
func (b *Builder) place(frames []int) string {
	for _, f := range frames {
		if b.frames[f].Kind != KernelFrame {
			continue
		}
		if s := b.stageOf(b.frames[f]); onPath(s) {
			return s
		}
	}
	return b.stageOf(b.frames[frames[0]])
}

// context returns on whose account a stack ran: of the frames that decide, the nearest to the leaf.
func (b *Builder) context(frames []int) string {
	for i, f := range frames {
		frame := b.frames[f]
		switch {
		case frame.Kind == UserFrame || frame.Kind == GuestFrame:
			if i == 0 {
				return ContextUser
			}
			return ContextTask
		case softIRQs[frame.Name]:
			for _, above := range frames[i:] {
				if b.frames[above].Name == "run_ksoftirqd" {
					return ContextThread
				}
			}
			return ContextSoftIRQ
		case frame.Name == "napi_threaded_poll" || frame.Name == "napi_threaded_poll_loop":
			return ContextThread
		case StageOf(frame.Name) == "irq" && frame.Name != "irq_thread" && frame.Name != "irq_thread_fn":
			return ContextInterrupt
		}
	}
	return ContextTask
}

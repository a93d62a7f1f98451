package processors

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// Triage answers, for one host that was watched, what people ask vmstat, mpstat, sar and
// /proc/interrupts one after the other: is the host busy, which processor, with what, for which
// card, and what would help.
type Triage struct {
	Seconds    float64     `json:"seconds"`
	CPUs       []CPU       `json:"cpus"`       // busiest first
	Interrupts []Interrupt `json:"interrupts"` // of cards; most frequent first
	Steps      []string    `json:"steps"`      // one sentence for each question, in the order in which people ask
	Matters    bool        `json:"matters"`    // whether a processor is what holds something up
	Verdict    string      `json:"verdict"`    // why it matters, or why not
	WaysOut    []WayOut    `json:"ways_out"`   // those that help first
}

// CPU is one processor in the time watched. Class is where most of its time went: idle, programs,
// kernel, packets, stolen.
type CPU struct {
	CPU           int     `json:"cpu"`
	Class         string  `json:"class"`
	User          float64 `json:"user_ratio"`
	Nice          float64 `json:"nice_ratio"` // of User: programs that give way to all others
	System        float64 `json:"system_ratio"`
	SoftIRQ       float64 `json:"softirq_ratio"`
	IRQ           float64 `json:"irq_ratio"`
	Steal         float64 `json:"steal_ratio"`
	Idle          float64 `json:"idle_ratio"`
	Interrupts    float64 `json:"card_interrupts_per_second"`
	Packets       float64 `json:"packets_per_second"`
	Squeezes      float64 `json:"time_squeezes_per_second"`
	DroppedTotal  uint64  `json:"dropped_total"`
	NetRxSoftirqs float64 `json:"net_rx_softirqs_per_second"`
}

// Interrupt is one interrupt of a card in the time watched.
type Interrupt struct {
	IRQ       int     `json:"irq"`
	Name      string  `json:"name,omitempty"`
	Interface string  `json:"interface"`
	Driver    string  `json:"driver,omitempty"`
	CPU       int     `json:"cpu"` // that served most of them
	PerSec    float64 `json:"interrupts_per_second"`
	// Frames is how many frames the interface moved, both ways, for each of its interrupts: near
	// one, every frame interrupts.
	Frames float64 `json:"frames_per_interrupt,omitempty"`
}

// WayOut is one thing that could be done, and whether it helps here.
type WayOut struct {
	Way     string  `json:"way"` // coalescing, steering, mtu, offloads, programs, hypervisor
	Helps   bool    `json:"helps"`
	Why     string  `json:"why"`
	Knob    knob.ID `json:"knob,omitempty"`
	Present string  `json:"present,omitempty"` // its value now
	Try     string  `json:"try,omitempty"`
}

const (
	// often is the rate of interrupts of one processor from which their handling, some microseconds
	// each, is a good part of its time.
	often = 20e3
	// fewFrames for each interrupt: below four the cost of the interrupt is spread over next to
	// nothing.
	fewFrames = 4
	// calm is the busiest a processor may be for nobody to care.
	calm = 0.50
)

// Examine makes the triage of a host that was watched.
func Examine(s *evidence.Span) *Triage {
	t := &Triage{Seconds: s.Seconds, CPUs: []CPU{}, Interrupts: []Interrupt{}, WaysOut: []WayOut{}}
	for _, c := range s.Classes() {
		line := CPU{CPU: c.CPU, Class: class(c), User: c.User, Nice: c.Nice, System: c.System, SoftIRQ: c.SoftIRQ,
			IRQ: c.IRQ, Steal: c.Steal, Idle: c.Idle}
		for _, w := range s.PerCPU {
			if w.CPU == c.CPU {
				line.Interrupts, line.Packets = s.PerSecond(float64(w.Interrupts)), s.PerSecond(float64(w.Packets))
				line.Squeezes, line.NetRxSoftirqs, line.DroppedTotal = s.PerSecond(float64(w.Squeezed)),
					s.PerSecond(float64(w.NetRx)), w.Dropped
			}
		}
		t.CPUs = append(t.CPUs, line)
	}
	slices.SortStableFunc(t.CPUs, func(a, b CPU) int { return cmp.Compare(a.Idle+a.Nice, b.Idle+b.Nice) })
	t.interrupts(s)
	if len(t.CPUs) == 0 {
		t.Verdict = "The kernel told nothing of its processors, so nothing can be said."
		t.Steps = []string{t.Verdict}
		return t
	}
	t.ask(s)
	t.judge(s)
	t.waysOut(s)
	return t
}

// class is where a processor's time went. Half of what it worked is enough to name it.
func class(c evidence.ClassRatios) string {
	if c.Busy() < 0.05 {
		return "idle"
	}
	best, name := 0.0, ""
	for _, x := range []struct {
		name string
		part float64
	}{{"programs", c.User}, {"kernel", c.System}, {"packets", c.SoftIRQ + c.IRQ}, {"stolen", c.Steal}} {
		if x.part > best {
			best, name = x.part, x.name
		}
	}
	return name
}

// interrupts are those of the cards, with the frames that each brought on average.
func (t *Triage) interrupts(s *evidence.Span) {
	of := make(map[string]float64)
	for _, i := range s.Interrupts {
		of[i.Interface] += float64(i.Total)
	}
	for _, i := range s.Interrupts {
		line := Interrupt{IRQ: i.Number, Name: i.Name, Interface: i.Interface,
			PerSec: s.PerSecond(float64(i.Total)), CPU: -1}
		var most uint64
		for _, c := range i.Counts {
			if c.Total > most {
				line.CPU, most = c.CPU, c.Total
			}
		}
		if card := cardOf(s, i.Interface); card != nil {
			line.Driver = card.Driver
		}
		if of[i.Interface] > 0 {
			line.Frames = frames(s, i.Interface) / of[i.Interface]
		}
		t.Interrupts = append(t.Interrupts, line)
	}
	slices.SortStableFunc(t.Interrupts, func(a, b Interrupt) int { return cmp.Compare(b.PerSec, a.PerSec) })
}

// frames are those that an interface moved, both ways.
func frames(s *evidence.Span, name string) float64 {
	return s.Count("nic."+name+".rx_packets") + s.Count("nic."+name+".tx_packets")
}

// cardOf is an interface of the snapshot; nil where there is none, or no snapshot.
func cardOf(s *evidence.Span, name string) *host.Interface {
	if s.Host == nil {
		return nil
	}
	for i := range s.Host.Interfaces {
		if s.Host.Interfaces[i].Name == name {
			return &s.Host.Interfaces[i]
		}
	}
	return nil
}

// ask goes through the questions in the order in which people ask them, from the whole to the part.
func (t *Triage) ask(s *evidence.Span) {
	all := s.Classes()
	t.Steps = append(t.Steps,
		fmt.Sprintf("Is the host busy? All %d processors together worked %s of the time: programs %s, kernel %s, packets %s, stolen %s.",
			len(all), evidence.Percent(mean(all, evidence.ClassRatios.Busy)),
			evidence.Percent(mean(all, func(c evidence.ClassRatios) float64 { return c.User })),
			evidence.Percent(mean(all, func(c evidence.ClassRatios) float64 { return c.System })),
			evidence.Percent(mean(all, packetWork)), evidence.Percent(mean(all, stolen))))
	c := t.CPUs[0]
	if c.Class == "idle" {
		t.Steps = append(t.Steps, fmt.Sprintf("Which processor? None: the busiest, CPU %d, was %s idle.", c.CPU,
			evidence.Percent(c.Idle)))
	} else {
		t.Steps = append(t.Steps,
			fmt.Sprintf("Which processor? CPU %d, busy %s of the time, most of it with %s (%s in user mode, %s softirq and interrupts).",
				c.CPU, evidence.Percent(1-c.Idle), c.Class, evidence.Percent(c.User),
				evidence.Percent(c.SoftIRQ+c.IRQ)))
	}
	t.Steps = append(t.Steps,
		fmt.Sprintf("How many packets? CPU %d took in %s packets and %s interrupts of cards a second.",
			c.CPU, evidence.Count(c.Packets), evidence.Count(c.Interrupts)))
	i, ok := t.culprit()
	switch {
	case !ok && len(t.Interrupts) == 0:
		t.Steps = append(t.Steps,
			"Which interrupt? No card interrupted: what moved came from this machine itself, or the card is shown to another namespace.")
	case !ok:
		t.Steps = append(t.Steps,
			fmt.Sprintf("Which interrupt? None of a card came to CPU %d; the most frequent, %d of %s, came %s times a second to CPU %d.",
				c.CPU, t.Interrupts[0].IRQ, t.Interrupts[0].Interface, evidence.Count(t.Interrupts[0].PerSec),
				t.Interrupts[0].CPU))
	default:
		t.Steps = append(t.Steps,
			fmt.Sprintf("Which interrupt? %d (%s) of %s, %s times a second on CPU %d, with %s frames each.",
				i.IRQ, cmp.Or(i.Name, "no name"), i.Interface, evidence.Count(i.PerSec), i.CPU,
				evidence.Count(i.Frames)))
	}
}

// culprit is the most frequent interrupt that comes to the busiest processor.
func (t *Triage) culprit() (Interrupt, bool) {
	for _, i := range t.Interrupts {
		if i.CPU == t.CPUs[0].CPU && i.PerSec > 0 {
			return i, true
		}
	}
	return Interrupt{}, false
}

// judge says whether any of it matters: a busy processor is what one pays for, as long as nothing
// waits for it.
func (t *Triage) judge(s *evidence.Span) {
	c := t.CPUs[0]
	lost := s.Count("softnet.dropped") + s.Sum("nic.", ".rx_missed_errors") + s.Sum("nic.", ".rx_fifo_errors")
	worked := 1 - c.Idle - c.Nice // what is left to programs that give way is left to the network
	switch {
	case s.SinceBoot:
		t.Verdict = fmt.Sprintf(
			"Whether it matters one snapshot does not tell: these are means since the host was started, in which cards and backlogs dropped %s packets.", evidence.Count(lost))
	case worked >= full && lost >= fewDrops:
		t.Matters = true
		t.Verdict = fmt.Sprintf(
			"It matters: CPU %d has nothing left, and %s packets were dropped before the stack meanwhile.", c.CPU,
			evidence.Count(lost))
	case worked >= softirqFull && c.Class == "packets":
		t.Matters = true
		t.Verdict = fmt.Sprintf(
			"It matters: CPU %d does nothing but move packets, so one more flow on it makes all others slower.", c.CPU)
	case worked >= full && c.Class == "stolen":
		t.Matters = true
		t.Verdict = fmt.Sprintf("It matters: the hypervisor had %s of CPU %d.", evidence.Percent(c.Steal), c.CPU)
	case worked >= full:
		t.Verdict = fmt.Sprintf("It may matter: CPU %d is full of %s, but no packet was dropped for it.",
			c.CPU, c.Class)
	case worked >= calm:
		t.Verdict = fmt.Sprintf(
			"It does not matter yet: CPU %d still has %s of its time, and cards and backlogs dropped %s packets.",
			c.CPU, evidence.Percent(c.Idle), evidence.Count(lost))
	case c.Nice >= calm:
		t.Verdict = fmt.Sprintf(
			"It does not matter: %s of CPU %d goes to programs that give way (nice), and cards and backlogs dropped %s packets.",
			evidence.Percent(c.Nice), c.CPU, evidence.Count(lost))
	default:
		t.Verdict = fmt.Sprintf(
			"It does not matter: the busiest processor was %s idle, and cards and backlogs dropped %s packets.",
			evidence.Percent(c.Idle), evidence.Count(lost))
	}
}

// waysOut says of each thing that people try whether it would help on this card, with the knob that
// its driver has.
func (t *Triage) waysOut(s *evidence.Span) {
	c := t.CPUs[0]
	switch c.Class {
	case "idle":
		return
	case "programs":
		t.WaysOut = append(t.WaysOut, t.programs(c))
	case "stolen":
		t.WaysOut = append(t.WaysOut,
			WayOut{Way: "hypervisor", Helps: true,
				Why: fmt.Sprintf("%s of CPU %d was given to other machines: nothing in this host helps.",
					evidence.Percent(c.Steal), c.CPU)})
	}
	i, ok := t.culprit()
	if !ok {
		return
	}
	card := cardOf(s, i.Interface)
	if card == nil {
		return
	}
	t.WaysOut = append(t.WaysOut, coalescing(card, c, i), t.steering(card, c), segmentSize(s, card, c))
	slices.SortStableFunc(t.WaysOut, func(a, b WayOut) int {
		if a.Helps == b.Helps {
			return 0
		}
		if a.Helps {
			return -1
		}
		return 1
	})
}

// programs help where one processor is full of them and another has time; what gives way is in
// nobody's way.
func (t *Triage) programs(c CPU) WayOut {
	w := WayOut{Way: "programs"}
	last := t.CPUs[len(t.CPUs)-1]
	switch {
	case c.User-c.Nice < c.Nice:
		w.Why = fmt.Sprintf("%s of CPU %d goes to programs that give way (nice): moving them gains nothing.",
			evidence.Percent(c.Nice), c.CPU)
	case last.Idle+last.Nice < 1-idleEnough:
		w.Why = fmt.Sprintf(
			"%s of CPU %d is spent in programs, and no processor has time for them: there is too much to do.",
			evidence.Percent(c.User), c.CPU)
	default:
		w.Helps = true
		w.Why = fmt.Sprintf(
			"%s of CPU %d is spent in programs: move them, or the card's interrupts, to another processor; CPU %d is %s idle.",
			evidence.Percent(c.User), c.CPU, last.CPU, evidence.Percent(last.Idle))
	}
	return w
}

// coalescing helps where interrupts are many and bring little each. How it is asked for is the
// driver's: by ethtool mostly, by a module parameter on cards of the e1000 family that have no such
// call.
func coalescing(card *host.Interface, c CPU, i Interrupt) WayOut {
	w := WayOut{Way: "coalescing", Helps: c.Interrupts >= often && i.Frames < fewFrames}
	switch usecs, ok := card.Coalesce["rx-usecs"]; {
	case ok:
		w.Knob, w.Present, w.Try = knob.ID("ethtool:"+card.Name+"/coalesce.rx-usecs"), fmt.Sprint(usecs),
			fmt.Sprint(max(2*usecs, 50))
	case card.Driver == "e1000" || card.Driver == "e1000e":
		w.Knob, w.Try = knob.ID("module:"+card.Driver+"/InterruptThrottleRate"), "8000"
	}
	w.Why = fmt.Sprintf("CPU %d has %s interrupts a second with %s frames each: %s",
		c.CPU, evidence.Count(c.Interrupts), evidence.Count(i.Frames),
		"gathering more would cost microseconds and save most of them.")
	switch {
	case !w.Helps && c.Interrupts < often:
		w.Why = fmt.Sprintf(
			"CPU %d has only %s interrupts a second; fewer would save next to nothing and cost latency.", c.CPU,
			evidence.Count(c.Interrupts))
	case !w.Helps:
		w.Why = fmt.Sprintf("Each interrupt of %s already brings %s frames.", card.Name, evidence.Count(i.Frames))
	case w.Knob == "":
		w.Why += fmt.Sprintf(" The driver %s offers no way to ask for it.", cmp.Or(card.Driver, "of "+card.Name))
	}
	if !w.Helps {
		w.Try = ""
	}
	return w
}

// steering helps where other processors have time: by more queues if the card has them, by RPS
// otherwise.
func (t *Triage) steering(card *host.Interface, c CPU) WayOut {
	w := WayOut{Way: "steering"}
	var rest float64
	for _, o := range t.CPUs[1:] {
		rest += (1 - o.Idle) / float64(len(t.CPUs)-1)
	}
	switch {
	case len(t.CPUs) < 2:
		w.Why = "There is one processor."
		return w
	case rest > idleEnough:
		w.Why = fmt.Sprintf("The other processors are %s busy themselves.", evidence.Percent(rest))
		return w
	case c.SoftIRQ+c.IRQ < calm:
		w.Why = fmt.Sprintf("Packets take %s of CPU %d; moving them gains no more than that.",
			evidence.Percent(c.SoftIRQ+c.IRQ), c.CPU)
		return w
	}
	w.Helps = true
	w.Why = fmt.Sprintf("The rest of the %d processors is %s busy. One flow alone cannot be spread.", len(t.CPUs),
		evidence.Percent(rest))
	switch ch := card.Channels; {
	case ch != nil && ch.Combined < ch.MaxCombined:
		w.Knob, w.Present, w.Try = knob.ID("ethtool:"+card.Name+"/channels.combined"), fmt.Sprint(ch.Combined),
			fmt.Sprint(min(ch.MaxCombined, uint32(len(t.CPUs))))
	case len(t.CPUs) <= 32:
		w.Knob, w.Try = knob.ID("queue:"+card.Name+"/rx-0/rps_cpus"),
			fmt.Sprintf("%x", (uint64(1)<<len(t.CPUs)-1)&^(uint64(1)<<c.CPU))
		for _, q := range card.Queues {
			if q.Name == "rx-0" {
				w.Present = q.RPSCPUs
			}
		}
	}
	return w
}

// segmentSize helps where frames are full and the stack gets them one by one: merging them (GRO)
// comes before larger frames (MTU), as it needs one host and not the whole path.
func segmentSize(s *evidence.Span, card *host.Interface, c CPU) WayOut {
	n := frames(s, card.Name)
	moved := s.Count("nic."+card.Name+".rx_bytes") + s.Count("nic."+card.Name+".tx_bytes")
	w := WayOut{Way: "mtu", Knob: knob.ID("link:" + card.Name + "/mtu"), Present: fmt.Sprint(card.MTUBytes)}
	if n <= 0 || c.SoftIRQ+c.IRQ < calm {
		w.Why = fmt.Sprintf("Packets take %s of CPU %d; larger ones gain no more than that.",
			evidence.Percent(c.SoftIRQ+c.IRQ), c.CPU)
		return w
	}
	size := moved / n
	if gro, ok := card.Features["rx-gro"]; ok && !gro.On && !gro.Fixed {
		return WayOut{Way: "offloads", Helps: true, Knob: knob.ID("ethtool:" + card.Name + "/feature.rx-gro"),
			Present: "off", Try: "on",
			Why: fmt.Sprintf("Received frames of %s on average are handed up one by one, because GRO is off.",
				evidence.Bytes(size))}
	}
	// Acknowledgements are half of the frames of a bulk flow and small, so the mean of a full-size
	// flow is about half of the MTU.
	if size < 0.4*float64(card.MTUBytes) || card.MTUBytes > 1500 {
		w.Why = fmt.Sprintf("Frames are %s on average at an MTU of %d: a larger one changes nothing for them.",
			evidence.Bytes(size), card.MTUBytes)
		return w
	}
	w.Helps, w.Try = true, "9000"
	w.Why = fmt.Sprintf(
		"Frames are %s on average, as large as the MTU of %d makes them. Every device of the path has to take larger ones.",
		evidence.Bytes(size), card.MTUBytes)
	return w
}

package processors

import (
	"cmp"
	"fmt"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// Triage answers, for one watched host, what an engineer finds out with vmstat, mpstat, sar and
// /proc/interrupts: is the host busy, which CPU, with what work, for which NIC, and what would
// help.
type Triage struct {
	Seconds    float64     `json:"seconds"`
	CPUs       []CPU       `json:"cpus"`       // busiest first
	Interrupts []Interrupt `json:"interrupts"` // of NICs; most frequent first
	Steps      []string    `json:"steps"`      // one sentence per question, in the usual order
	Matters    bool        `json:"matters"`    // whether a CPU is a bottleneck
	Verdict    string      `json:"verdict"`    // why it matters, or why not
	WaysOut    []WayOut    `json:"ways_out"`   // helpful ones first
}

// CPU is one CPU over the observed time. Class is where most of its time went: idle, programs,
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

// Interrupt is one interrupt of a NIC over the observed time.
type Interrupt struct {
	IRQ       int     `json:"irq"`
	Name      string  `json:"name,omitempty"`
	Interface string  `json:"interface"`
	Driver    string  `json:"driver,omitempty"`
	CPU       int     `json:"cpu"` // the CPU that served most of them
	PerSec    float64 `json:"interrupts_per_second"`
	// Frames is how many frames the interface moved, in both directions, per interrupt: near one,
	// every frame interrupts.
	Frames float64 `json:"frames_per_interrupt,omitempty"`
}

// WayOut is one possible measure, and whether it helps here.
type WayOut struct {
	Way     string  `json:"way"` // coalescing, steering, mtu, offloads, programs, hypervisor
	Helps   bool    `json:"helps"`
	Why     string  `json:"why"`
	Knob    knob.ID `json:"knob,omitempty"`
	Present string  `json:"present,omitempty"` // its present value
	Try     string  `json:"try,omitempty"`
}

const (
	// often is the rate of interrupts of one CPU from which on their handling, some microseconds
	// each, takes a good part of its time.
	often = 20e3
	// fewFrames per interrupt: below four, next to nothing shares the cost of the interrupt.
	fewFrames = 4
	// calm is how busy a CPU may be without a question.
	calm = 0.50
)

// Examine returns the triage of a watched host.
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
	sorting.StableFunc(t.CPUs, func(a, b CPU) int { return cmp.Compare(a.Idle+a.Nice, b.Idle+b.Nice) })
	t.interrupts(s)
	if len(t.CPUs) == 0 {
		t.Verdict = "The kernel reported no CPU times, so no triage is possible."
		t.Steps = []string{t.Verdict}
		return t
	}
	t.ask(s)
	t.judge(s)
	t.waysOut(s)
	return t
}

// class returns where most of a CPU's busy time went.
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

// interrupts fills in the interrupts of the NICs, with the mean number of frames per interrupt.
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
	sorting.StableFunc(t.Interrupts, func(a, b Interrupt) int { return cmp.Compare(b.PerSec, a.PerSec) })
}

// frames returns how many frames an interface moved in both directions.
func frames(s *evidence.Span, name string) float64 {
	return s.Count("nic."+name+".rx_packets") + s.Count("nic."+name+".tx_packets")
}

// cardOf returns an interface of the snapshot; nil if it does not exist, or without a snapshot.
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

// ask answers the questions in their usual order, from the whole to the part.
func (t *Triage) ask(s *evidence.Span) {
	all := s.Classes()
	t.Steps = append(t.Steps,
		fmt.Sprintf("Is the host busy? All %d CPUs together were busy for %s of the time: programs %s, "+
			"kernel %s, packets %s, stolen %s.",
			len(all), evidence.Percent(mean(all, evidence.ClassRatios.Busy)),
			evidence.Percent(mean(all, func(c evidence.ClassRatios) float64 { return c.User })),
			evidence.Percent(mean(all, func(c evidence.ClassRatios) float64 { return c.System })),
			evidence.Percent(mean(all, packetWork)), evidence.Percent(mean(all, stolen))))
	c := t.CPUs[0]
	if c.Class == "idle" {
		t.Steps = append(t.Steps, fmt.Sprintf("Which CPU? None: the busiest one, CPU %d, was %s idle.", c.CPU,
			evidence.Percent(c.Idle)))
	} else {
		t.Steps = append(t.Steps,
			fmt.Sprintf("Which CPU? CPU %d, busy for %s of the time, mostly with %s (%s in user mode, "+
				"%s softirq and interrupts).",
				c.CPU, evidence.Percent(1-c.Idle), c.Class, evidence.Percent(c.User),
				evidence.Percent(c.SoftIRQ+c.IRQ)))
	}
	t.Steps = append(t.Steps,
		fmt.Sprintf("How many packets? CPU %d received %s packets and %s NIC interrupts a second.",
			c.CPU, evidence.Count(c.Packets), evidence.Count(c.Interrupts)))
	i, ok := t.culprit()
	switch {
	case !ok && len(t.Interrupts) == 0:
		t.Steps = append(t.Steps,
			"Which interrupt? No NIC interrupted: the traffic came from this machine itself, "+
				"or the NIC belongs to another namespace.")
	case !ok:
		t.Steps = append(t.Steps,
			fmt.Sprintf("Which interrupt? No NIC interrupted CPU %d; the most frequent interrupt, %d of %s, "+
				"occurred %s times a second on CPU %d.",
				c.CPU, t.Interrupts[0].IRQ, t.Interrupts[0].Interface, evidence.Count(t.Interrupts[0].PerSec),
				t.Interrupts[0].CPU))
	default:
		t.Steps = append(t.Steps,
			fmt.Sprintf("Which interrupt? %d (%s) of %s, %s times a second on CPU %d, with %s frames each.",
				i.IRQ, cmp.Or(i.Name, "no name"), i.Interface, evidence.Count(i.PerSec), i.CPU,
				evidence.Count(i.Frames)))
	}
}

// culprit returns the most frequent interrupt of the busiest CPU.
func (t *Triage) culprit() (Interrupt, bool) {
	for _, i := range t.Interrupts {
		if i.CPU == t.CPUs[0].CPU && i.PerSec > 0 {
			return i, true
		}
	}
	return Interrupt{}, false
}

// judge decides whether any of it matters: a busy CPU is no problem as long as nothing waits for
// it.
func (t *Triage) judge(s *evidence.Span) {
	c := t.CPUs[0]
	lost := s.Count("softnet.dropped") + s.Sum("nic.", ".rx_missed_errors") + s.Sum("nic.", ".rx_fifo_errors")
	worked := 1 - c.Idle - c.Nice // the network gets the time of programs that give way
	switch {
	case s.SinceBoot:
		t.Verdict = fmt.Sprintf(
			"One snapshot does not show whether it matters: these are means since boot, "+
				"in which NICs and backlogs dropped %s packets.", evidence.Count(lost))
	case worked >= full && lost >= fewDrops:
		t.Matters = true
		t.Verdict = fmt.Sprintf(
			"It matters: CPU %d has no time left, and %s packets were dropped before the network stack meanwhile.",
			c.CPU,
			evidence.Count(lost))
	case worked >= softirqFull && c.Class == "packets":
		t.Matters = true
		t.Verdict = fmt.Sprintf(
			"It matters: CPU %d only moves packets, so one more flow on it slows down all others.", c.CPU)
	case worked >= full && c.Class == "stolen":
		t.Matters = true
		t.Verdict = fmt.Sprintf("It matters: the hypervisor took %s of CPU %d.", evidence.Percent(c.Steal), c.CPU)
	case worked >= full:
		t.Verdict = fmt.Sprintf("It may matter: CPU %d is saturated with %s, but no packet was dropped because "+
			"of it.",
			c.CPU, c.Class)
	case worked >= calm:
		t.Verdict = fmt.Sprintf(
			"It does not matter yet: CPU %d still has %s of its time left, and NICs and backlogs dropped %s packets.",
			c.CPU, evidence.Percent(c.Idle), evidence.Count(lost))
	case c.Nice >= calm:
		t.Verdict = fmt.Sprintf(
			"It does not matter: %s of CPU %d goes to programs that give way (nice), "+
				"and NICs and backlogs dropped %s packets.",
			evidence.Percent(c.Nice), c.CPU, evidence.Count(lost))
	default:
		t.Verdict = fmt.Sprintf(
			"It does not matter: the busiest CPU was %s idle, and NICs and backlogs dropped %s packets.",
			evidence.Percent(c.Idle), evidence.Count(lost))
	}
}

// waysOut decides for each usual measure whether it would help with this NIC, and names the knob of
// its driver.
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
				Why: fmt.Sprintf("%s of CPU %d went to other machines: no setting of this host helps.",
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
	sorting.StableFunc(t.WaysOut, func(a, b WayOut) int {
		if a.Helps == b.Helps {
			return 0
		}
		if a.Helps {
			return -1
		}
		return 1
	})
}

// programs says whether moving programs helps: it does if they saturate one CPU and another has
// time. Programs that give way do no harm.
func (t *Triage) programs(c CPU) WayOut {
	w := WayOut{Way: "programs"}
	last := t.CPUs[len(t.CPUs)-1]
	switch {
	case c.User-c.Nice < c.Nice:
		w.Why = fmt.Sprintf("%s of CPU %d goes to programs that give way (nice): moving them gains nothing.",
			evidence.Percent(c.Nice), c.CPU)
	case last.Idle+last.Nice < 1-idleEnough:
		w.Why = fmt.Sprintf(
			"Programs take %s of CPU %d, and no other CPU has time for them: the host has too much work.",
			evidence.Percent(c.User), c.CPU)
	default:
		w.Helps = true
		w.Why = fmt.Sprintf(
			"Programs take %s of CPU %d: move them, or the interrupts of the NIC, to another CPU; CPU %d is %s idle.",
			evidence.Percent(c.User), c.CPU, last.CPU, evidence.Percent(last.Idle))
	}
	return w
}

// coalescing says whether fewer interrupts help: they do if there are many with few frames each.
// The driver determines the knob: ethtool mostly, a module parameter for NICs of the e1000 family
// without that call.
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
		"gathering more frames per interrupt would cost microseconds and avoid most interrupts.")
	switch {
	case !w.Helps && c.Interrupts < often:
		w.Why = fmt.Sprintf(
			"CPU %d has only %s interrupts a second; fewer would save next to nothing and cost latency.", c.CPU,
			evidence.Count(c.Interrupts))
	case !w.Helps:
		w.Why = fmt.Sprintf("Each interrupt of %s already brings %s frames.", card.Name, evidence.Count(i.Frames))
	case w.Knob == "":
		w.Why += fmt.Sprintf(" The driver %s has no setting for it.", cmp.Or(card.Driver, "of "+card.Name))
	}
	if !w.Helps {
		w.Try = ""
	}
	return w
}

// steering says whether other CPUs can take over packets: by more queues if the NIC has them,
// otherwise by RPS.
func (t *Triage) steering(card *host.Interface, c CPU) WayOut {
	w := WayOut{Way: "steering"}
	var rest float64
	for _, o := range t.CPUs[1:] {
		rest += (1 - o.Idle) / float64(len(t.CPUs)-1)
	}
	switch {
	case len(t.CPUs) < 2:
		w.Why = "The host has one CPU."
		return w
	case rest > idleEnough:
		w.Why = fmt.Sprintf("The other CPUs are %s busy themselves.", evidence.Percent(rest))
		return w
	case c.SoftIRQ+c.IRQ < calm:
		w.Why = fmt.Sprintf("Packets take %s of CPU %d; moving them gains no more than that.",
			evidence.Percent(c.SoftIRQ+c.IRQ), c.CPU)
		return w
	}
	w.Helps = true
	w.Why = fmt.Sprintf("The other CPUs are %s busy. A single flow cannot be spread.", evidence.Percent(rest))
	mask := otherMask(t.CPUs, func(o CPU) int { return o.CPU }, c.CPU)
	switch ch := card.Channels; {
	case ch != nil && ch.Combined < ch.MaxCombined:
		w.Knob, w.Present, w.Try = knob.ID("ethtool:"+card.Name+"/channels.combined"), fmt.Sprint(ch.Combined),
			fmt.Sprint(min(ch.MaxCombined, uint32(len(t.CPUs))))
	case mask != "":
		w.Knob, w.Try = knob.ID("queue:"+card.Name+"/rx-0/rps_cpus"), mask
		for _, q := range card.Queues {
			if q.Name == "rx-0" {
				w.Present = q.RPSCPUs
			}
		}
	}
	return w
}

// segmentSize says whether larger units help: they do if frames are full and the stack gets them
// one at a time. Merging them (GRO) comes before larger frames (MTU), because it needs one host and
// not the whole path.
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
			Why: fmt.Sprintf("The NIC passes on received frames of %s on average one at a time, because GRO is off.",
				evidence.Bytes(size))}
	}
	// Acknowledgements are half of the frames of a bulk flow and small, so the mean of a full-size
	// flow is about half of the MTU.
	if size < 0.4*float64(card.MTUBytes) || card.MTUBytes > 1500 {
		w.Why = fmt.Sprintf("Frames are %s on average at an MTU of %d: a larger MTU does not change them.",
			evidence.Bytes(size), card.MTUBytes)
		return w
	}
	w.Helps, w.Try = true, "9000"
	w.Why = fmt.Sprintf(
		"Frames are %s on average, as large as the MTU of %d allows. Every device on the path must support "+
			"larger ones.",
		evidence.Bytes(size), card.MTUBytes)
	return w
}

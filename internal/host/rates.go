package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/linerate/linerate/internal/hostfs"
	"github.com/linerate/linerate/internal/procfs"
)

// CardInterrupts is what one network card asked the processors for.
type CardInterrupts struct {
	Interface  string
	Driver     string      // empty: not told
	Interrupts []Interrupt // by number, counts since boot; none of a card behind a bus that has them instead (USB)
}

// CardInterrupts reads the interrupts of the network cards by CPU. It is a reading like that of [Root.Counters] and apart from it, because the kernel prints the
// interrupts of all devices for it. Interfaces that are functions of one device (representors of a switch) may have the same interrupts. On
// other systems than Linux a live root gives errors.ErrUnsupported.
func (r Root) CardInterrupts() ([]CardInterrupts, error) {
	if r.live() && !hostfs.LiveSupported {
		return nil, fmt.Errorf("read interrupts: %w", errors.ErrUnsupported)
	}
	src, err := r.open()
	if err != nil {
		return nil, err
	}
	defer src.close()
	var said notes
	table := readInterruptTable(src, &said)
	names, err := src.List("sys/class/net")
	if err = errors.Join(append(said.causes, err)...); err != nil {
		return nil, fmt.Errorf("read interrupts: %w", err)
	}
	var cards []CardInterrupts
	for _, name := range names {
		device, ok := src.Resolve("sys/class/net/" + name + "/device")
		if !ok || !src.sysfsShows(name) {
			continue
		}
		card := CardInterrupts{Interface: name, Interrupts: readInterrupts(src, table, name, device)}
		if driver, ok := src.Link(device + "/driver"); ok {
			card.Driver = path.Base(driver)
		}
		cards = append(cards, card)
	}
	return cards, nil
}

// WatchInterrupts reads the interrupts of the running system twice, interval apart, and puts their rates into s, a snapshot of it: of each interrupt of a card over all
// CPUs and on each, as sar -I and mpstat -I have them. It is apart from Snapshot because a rate takes time. The error is errors.ErrUnsupported for an
// archive, which is one moment, and that of ctx when it ends first; s is then as it was.
func (r Root) WatchInterrupts(ctx context.Context, s *Snapshot, interval time.Duration) error {
	if !r.live() {
		return fmt.Errorf("interrupt rates: %w: an archive is one moment", errors.ErrUnsupported)
	}
	src, err := r.open()
	if err != nil {
		return err
	}
	defer src.close()
	read := func() (map[int]procfs.Interrupt, time.Time, error) {
		b, err := src.Read("proc/interrupts")
		// Behind the read: on a large host the kernel takes a while over this file, at both readings alike.
		at := time.Now()
		if err != nil {
			return nil, at, fmt.Errorf("interrupt rates: %w", err)
		}
		table, err := procfs.ParseInterrupts(b)
		return table, at, err
	}
	before, from, err := read()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
		// A clock and no ticker: what is divided by is the time that passed, so a late wake-up costs nothing.
	case <-time.After(interval):
	}
	after, to, err := read()
	if err != nil {
		return err
	}
	interruptRates(s, before, after, to.Sub(from).Seconds())
	return nil
}

// interruptRates puts what came between two readings into s. The kernel counts in 32 bits (kstat_irqs_cpu), so a lower count is one that went through zero.
func interruptRates(s *Snapshot, before, after map[int]procfs.Interrupt, seconds float64) {
	if !(seconds > 0) {
		return
	}
	for i := range s.Interfaces {
		for j := range s.Interfaces[i].Interrupts {
			irq := &s.Interfaces[i].Interrupts[j]
			was, known := before[irq.Number]
			now, still := after[irq.Number]
			if !known || !still {
				continue // a driver that changes its vectors while one looks
			}
			counted := make(map[int]uint64, len(was.Counts))
			for _, c := range was.Counts {
				counted[c.CPU] = c.Count
			}
			// The totals become those of the later reading, so that a CPU which served it for the first time just now is there as well.
			irq.Counts = nil
			sum := 0.0
			for _, c := range now.Counts {
				rate := float64(uint32(c.Count-counted[c.CPU])) / seconds
				sum += rate
				irq.Counts = append(irq.Counts, CPUCount{CPU: c.CPU, Total: c.Count, PerSec: &rate})
			}
			irq.PerSec = &sum
		}
	}
}

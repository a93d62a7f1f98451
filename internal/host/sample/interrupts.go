package sample

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/nicstat"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// interrupts follows the interrupts of the NICs.
type interrupts struct {
	pace    pace
	learned time.Duration // since boot
	seen    int           // the set of interfaces, by links.changed

	lines  []*line
	queues []*queueLines
	base   []uint64 // by processor, of lines that no longer exist
	series []*Series
	sums   []uint64
	buf    []byte
	row    []uint64
}

// line is one interrupt of a card with its count on each processor.
type line struct {
	number int
	tally  *tally
}

// queueLines are the interrupts of one queue.
type queueLines struct {
	link    *link
	numbers []int
	tally   *tally
	now     []uint64
	series  *Series
}

func (s *Sampler) readInterrupts(r *Reading) {
	t := &s.interrupts
	if t.learned == 0 || t.seen != s.links.changed || r.SinceBoot-t.learned >= slowEvery {
		s.learnInterrupts(r)
	}
	if s.processors.haveIRQs {
		t.addQueues(s, r)
	}
	if len(t.lines) == 0 || !t.pace.due(r.SinceBoot) {
		return
	}
	began := sys.Boottime()
	for _, l := range t.lines {
		row, ok := t.readLine(l.number)
		if !ok {
			continue // the line is gone, or the kernel does not report it
		}
		if l.tally == nil || len(l.tally.was) != len(row) {
			l.tally = newTally(len(row), 0, bits32)
		}
		l.tally.add(row, nil)
	}
	t.addProcessors(s, r)
	t.pace.done(r.SinceBoot, sys.Boottime()-began, 1)
}

// readLine reads how often each processor took an interrupt (irq_attributes in
// kernel/irq/irqdesc.c: per_cpu_count, "1,0", since Linux 4.9).
func (t *interrupts) readLine(number int) ([]uint64, bool) {
	f, err := openFile("/sys/kernel/irq/" + strconv.Itoa(number) + "/per_cpu_count")
	if err != nil {
		return nil, false
	}
	defer f.close()
	if cap(t.buf) == 0 {
		t.buf = make([]byte, 4<<10)
	}
	if t.buf, err = f.read(t.buf); err != nil {
		return nil, false
	}
	t.row = t.row[:0]
	for text := bytes.TrimSpace(t.buf); len(text) > 0; {
		var number []byte
		number, text, _ = bytes.Cut(text, []byte{','})
		n, ok := procfs.ParseUint(number)
		if !ok {
			return nil, false
		}
		t.row = append(t.row, n)
	}
	return t.row, len(t.row) > 0
}

// addTo adds the counts of each processor to sums.
func (l *line) addTo(sums []uint64) []uint64 {
	if l.tally == nil {
		return sums
	}
	for cpu, n := range l.tally.sum {
		for len(sums) <= cpu {
			sums = append(sums, 0)
		}
		sums[cpu] += n
	}
	return sums
}

// addProcessors adds the points of each processor.
func (t *interrupts) addProcessors(s *Sampler, r *Reading) {
	t.sums = append(t.sums[:0], t.base...)
	for _, l := range t.lines {
		t.sums = l.addTo(t.sums)
	}
	for cpu, n := range t.sums {
		for len(t.series) <= cpu {
			t.series = append(t.series, nil)
		}
		switch here := s.processors.has(cpu, s.count); {
		case here && t.series[cpu] == nil:
			t.series[cpu] = &Series{Metric: cpuCardInterrupts, Values: []string{strconv.Itoa(cpu)}}
			fallthrough
		case here:
			r.put(t.series[cpu], float64(n))
		case t.series[cpu] != nil:
			r.Ended = append(r.Ended, t.series[cpu])
			t.series[cpu] = nil
		}
	}
}

// addQueues adds the points of each queue's interrupts.
func (t *interrupts) addQueues(s *Sampler, r *Reading) {
	for _, q := range t.queues {
		for i, number := range q.numbers {
			if q.now[i] = 0; number < len(s.processors.interrupts) {
				q.now[i] = s.processors.interrupts[number]
			}
		}
		q.tally.add(q.now, nil)
		if q.link.quiet == s.count {
			continue
		}
		var sum uint64
		for _, n := range q.tally.sum {
			sum += n
		}
		r.put(q.series, float64(sum))
	}
}

// learnInterrupts finds which interrupts belong to which interface. Previous counts are kept.
func (s *Sampler) learnInterrupts(r *Reading) {
	t := &s.interrupts
	t.learned, t.seen = r.SinceBoot, s.links.changed
	lines := make(map[int]*line, len(t.lines))
	for _, l := range t.lines {
		lines[l.number] = l
	}
	var kept []*line
	var queues []*queueLines
	for i := range s.links.now {
		n := &s.links.now[i]
		k := s.links.byIndex[n.Index]
		if !k.hardware || !s.shows(n) {
			continue
		}
		byQueue := make(map[string][]int)
		for _, number := range numbersOf(n.Name) {
			actions, err := os.ReadFile("/sys/kernel/irq/" + strconv.Itoa(number) + "/actions")
			name := strings.TrimSpace(string(actions))
			if err == nil && name == "" {
				continue // an unused vector
			}
			queue, ok := nicstat.InterruptQueue(name)
			if !ok {
				queue = "other"
			}
			byQueue[queue] = append(byQueue[queue], number)
			if l := lines[number]; l != nil {
				kept = append(kept, l)
				delete(lines, number)
			} else if !slices.ContainsFunc(kept, func(l *line) bool { return l.number == number }) {
				kept = append(kept, &line{number: number})
			}
		}
		queues = append(queues, t.queuesOf(k, byQueue)...)
	}
	for _, l := range lines {
		t.base = l.addTo(t.base)
	}
	for _, q := range t.queues {
		if !slices.Contains(queues, q) && slices.Contains(q.link.owned, q.series) {
			q.link.owned.drop(r, q.series)
		}
	}
	t.lines, t.queues = kept, queues
}

// queuesOf returns the queues of an interface; unchanged ones keep their counts.
func (t *interrupts) queuesOf(k *link, byQueue map[string][]int) []*queueLines {
	var found []*queueLines
	for queue, numbers := range byQueue {
		if i := slices.IndexFunc(t.queues, func(q *queueLines) bool {
			return q.link == k && q.series.Values[1] == queue && slices.Contains(k.owned, q.series)
		}); i >= 0 {
			q := t.queues[i]
			if !slices.Equal(q.numbers, numbers) {
				// Under other numbers, earlier counts are not news.
				q.numbers, q.now = numbers, make([]uint64, len(numbers))
				sums := q.tally.sum
				q.tally = newTally(len(numbers), 0, bits32)
				for _, n := range sums {
					q.tally.sum[0] += n
				}
			}
			found = append(found, q)
			continue
		}
		found = append(found, &queueLines{
			link: k, numbers: numbers, now: make([]uint64, len(numbers)), tally: newTally(len(numbers), 0, bits32),
			series: k.owned.add(queueInterrupts, k.name, queue),
		})
	}
	sorting.Func(found, func(a, b *queueLines) int {
		ad, an := interruptKey(a.series.Values[1])
		bd, bn := interruptKey(b.series.Values[1])
		return cmp.Or(cmp.Compare(ad, bd), cmp.Compare(an, bn))
	})
	return found
}

// numbersOf returns the interrupts of a card, as package host finds them: msi_irqs of its PCI
// function (sysfs-bus-pci), for a virtio card one directory up; otherwise the one line of its slot.
func numbersOf(name string) []int {
	device, err := filepath.EvalSymlinks("/sys/class/net/" + name + "/device")
	if err != nil {
		return nil
	}
	var numbers []int
	for _, dir := range []string{device, filepath.Dir(device)} {
		entries, _ := os.ReadDir(dir + "/msi_irqs")
		for _, e := range entries {
			if n, err := strconv.Atoi(e.Name()); err == nil {
				numbers = append(numbers, n)
			}
		}
		if len(numbers) > 0 || !strings.HasPrefix(filepath.Base(dir), "virtio") {
			break
		}
	}
	if len(numbers) == 0 {
		b, _ := os.ReadFile(device + "/irq")
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

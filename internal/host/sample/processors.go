package sample

import (
	"strconv"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// processors follows times, softirqs and packets of each processor.
type processors struct {
	stat, softirqs, softnet *file

	cpus       []*cpu // by number; nil: never seen
	columns    []int
	switches   *tally
	switchesOf *Series
	interrupts []uint64 // by number, of the present reading
	haveIRQs   bool
	gone       uint64 // dropped by processors that went offline
	dropsOf    *Series
}

// cpu is one processor.
type cpu struct {
	owned   owned
	ticks   *tally
	modes   [procfs.StatModes]*Series
	softirq [2]*tally // receive, transmit
	kinds   [2]*Series
	softnet *tally
	columns [4]*Series
	seen    int // the last reading that contained it
}

// modeNames are the values of the label mode, in the order of the file.
var modeNames = [procfs.StatModes]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

func (p *processors) open() {
	p.stat, _ = openFile("/proc/stat")
	p.softirqs, _ = openFile("/proc/softirqs")
	p.softnet, _ = openFile("/proc/net/softnet_stat")
	p.switches = newTally(1, 0, bits64)
	p.switchesOf = &Series{Metric: contextSwitches}
	p.dropsOf = &Series{Metric: hostDrops, Values: []string{"softnet"}}
}

func (p *processors) close() {
	p.stat.close()
	p.softirqs.close()
	p.softnet.close()
}

// of returns a processor; its first line creates it.
func (p *processors) of(id int) *cpu {
	for len(p.cpus) <= id {
		p.cpus = append(p.cpus, nil)
	}
	if p.cpus[id] == nil {
		name := strconv.Itoa(id)
		c := &cpu{ticks: newTally(procfs.StatModes, 0, bits64),
			softirq: [2]*tally{newTally(1, 0, bits32), newTally(1, 0, bits32)}, softnet: newTally(4, 0, bits32)}
		for i, mode := range modeNames {
			c.modes[i] = c.owned.add(cpuSeconds, name, mode)
		}
		c.kinds = [2]*Series{c.owned.add(cpuSoftirqs, name, "net_rx"), c.owned.add(cpuSoftirqs, name, "net_tx")}
		for i, m := range []*Metric{softnetPackets, softnetDropped, softnetSqueezes, softnetRPS} {
			c.columns[i] = c.owned.add(m, name)
		}
		p.cpus[id] = c
	}
	return p.cpus[id]
}

func (p *processors) read(s *Sampler, r *Reading) {
	if p.readStat(s, r); !p.haveIRQs {
		return // the online processors are not known
	}
	p.readSoftirqs(s, r)
	for id, c := range p.cpus {
		if c != nil && c.seen != s.count {
			c.owned.end(r)
			p.gone += c.softnet.sum[1]
			p.cpus[id] = nil
		}
	}
	p.readSoftnet(s, r)
}

func (p *processors) readStat(s *Sampler, r *Reading) {
	p.haveIRQs = false
	if p.stat == nil {
		return
	}
	var err error
	if s.buf, err = p.stat.read(s.buf); err == nil {
		p.interrupts = p.interrupts[:0]
		err = procfs.EachStat(s.buf, func(id int, ticks *[procfs.StatModes]uint64) {
			c := p.of(id)
			c.seen = s.count
			c.ticks.add(ticks[:], nil)
			for i, series := range c.modes {
				r.put(series, float64(c.ticks.sum[i])*procfs.TickSeconds)
			}
		}, func(_ int, n uint64) {
			p.interrupts = append(p.interrupts, n)
		}, func(n uint64) {
			p.switches.add([]uint64{n}, nil)
			r.put(p.switchesOf, float64(p.switches.sum[0]))
		})
	}
	p.haveIRQs = err == nil
	if err != nil {
		r.warn("times of processors in /proc/stat", err)
	}
}

func (p *processors) readSoftirqs(s *Sampler, r *Reading) {
	if p.softirqs == nil {
		return
	}
	var err error
	if s.buf, err = p.softirqs.read(s.buf); err == nil {
		p.columns, err = procfs.EachSoftIRQ(s.buf, p.columns, func(receive bool, id int, n uint64) {
			// Columns are for possible processors, not only for online ones.
			if !p.has(id, s.count) {
				return
			}
			c, i := p.cpus[id], 0
			if !receive {
				i = 1
			}
			c.softirq[i].add([]uint64{n}, nil)
			r.put(c.kinds[i], float64(c.softirq[i].sum[0]))
		})
	}
	if err != nil {
		r.warn("softirqs in /proc/softirqs", err)
	}
}

func (p *processors) readSoftnet(s *Sampler, r *Reading) {
	if p.softnet == nil {
		return
	}
	var err error
	if s.buf, err = p.softnet.read(s.buf); err == nil {
		dropped := p.gone
		err = procfs.EachSoftnet(s.buf, func(line *procfs.SoftnetLine) {
			if !p.has(line.CPU, s.count) {
				return
			}
			c := p.cpus[line.CPU]
			c.softnet.add([]uint64{line.Processed, line.Dropped, line.TimeSqueeze, line.ReceivedRPS}, nil)
			for i, series := range c.columns {
				r.put(series, float64(c.softnet.sum[i]))
			}
			dropped += c.softnet.sum[1]
		})
		r.put(p.dropsOf, float64(dropped))
	}
	if err != nil {
		r.warn("backlogs of processors in /proc/net/softnet_stat", err)
	}
}

// has reports whether a processor was online in a reading.
func (p *processors) has(id, reading int) bool {
	return id < len(p.cpus) && p.cpus[id] != nil && p.cpus[id].seen == reading
}

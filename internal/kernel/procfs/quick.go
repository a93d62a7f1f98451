package procfs

import (
	"bytes"
	"fmt"
)

// The readers here are for a host that is read every second: they neither allocate nor use a map.
// The parsers of whole files use them if both read everything on a line. ParseSNMP, which returns
// every name, has its own loop, and the tests compare the two.

// Columns reads some of the counters of files like /proc/net/snmp and /proc/net/netstat
// ([ParseSNMP]). It remembers the lines of names, so that the next reading of the same file parses
// only numbers. It belongs to one file and is not safe for concurrent use.
type Columns struct {
	wanted map[string]int
	pairs  []columnPair
}

// columnPair is a line of names, and for each name the index of its number or -1.
type columnPair struct {
	heads  []byte
	places []int
}

// NewColumns selects counters by name: Tcp.RetransSegs.
func NewColumns(names ...string) *Columns {
	c := &Columns{wanted: make(map[string]int, len(names))}
	for i, name := range names {
		c.wanted[name] = i
	}
	return c
}

// Read puts each counter at the index of its name in NewColumns, and sets known for the counters
// found. Both slices must have room for all. Signed values are absent.
func (c *Columns) Read(b []byte, into []uint64, known []bool) error {
	clear(known)
	for pair := 0; len(b) > 0; pair++ {
		var heads, numbers []byte
		heads, b = cutLine(b)
		if len(bytes.TrimSpace(heads)) == 0 {
			pair--
			continue
		}
		numbers, b = cutLine(b)
		if pair == len(c.pairs) {
			c.pairs = append(c.pairs, columnPair{})
		}
		p := &c.pairs[pair]
		if !bytes.Equal(p.heads, heads) {
			p.learn(heads, c.wanted)
		}
		group, _ := word(heads)
		group2, rest := word(numbers)
		if len(group) < 2 || group[len(group)-1] != ':' || !bytes.Equal(group, group2) {
			return fmt.Errorf("line %.20q over %.20q: %w", heads, numbers, ErrFormat)
		}
		for _, place := range p.places {
			var number []byte
			number, rest = word(rest)
			if len(number) == 0 {
				return fmt.Errorf("%s has more names than values: %w", group, ErrFormat)
			}
			if place < 0 {
				continue
			}
			if n, ok := ParseUint(number); ok {
				into[place], known[place] = n, true
			}
		}
		if extra, _ := word(rest); len(extra) > 0 {
			return fmt.Errorf("%s has more values than names: %w", group, ErrFormat)
		}
	}
	return nil
}

func (p *columnPair) learn(heads []byte, wanted map[string]int) {
	p.heads = append(p.heads[:0], heads...)
	p.places = p.places[:0]
	group, rest := word(heads)
	prefix := string(bytes.TrimSuffix(group, []byte(":"))) + "."
	for {
		var name []byte
		name, rest = word(rest)
		if len(name) == 0 {
			return
		}
		place, ok := wanted[prefix+string(name)]
		if !ok {
			place = -1
		}
		p.places = append(p.places, place)
	}
}

// ReadRows reads counters from files with a name and a number on each line, like /proc/net/snmp6
// and /proc/meminfo, under the file's own names (without a colon at the end).
func (c *Columns) ReadRows(b []byte, into []uint64, known []bool) error {
	clear(known)
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest := word(line)
		place, ok := c.wanted[string(bytes.TrimSuffix(name, []byte(":")))]
		if !ok {
			continue
		}
		number, _ := word(rest)
		n, ok := ParseUint(number)
		if !ok {
			return fmt.Errorf("line %.40q: %w", line, ErrFormat)
		}
		into[place], known[place] = n, true
	}
	return nil
}

// StatModes are the columns of a processor in /proc/stat, in their order. They do not overlap.
const (
	TicksUser = iota
	TicksNice
	TicksSystem
	TicksIdle
	TicksIOWait
	TicksIRQ
	TicksSoftIRQ
	TicksSteal
	StatModes
)

// TickSeconds is the unit of the columns in seconds.
const TickSeconds = userTick

// EachStat reads /proc/stat ([ParseStat]): the ticks of each processor, the count of each numbered
// interrupt on all processors together, and the context switches. Any of the three functions may be
// nil. The array is reused.
func EachStat(b []byte, cpu func(id int, ticks *[StatModes]uint64), interrupt func(number int, n uint64),
	switches func(n uint64)) error {
	var ticks [StatModes]uint64
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, rest := word(line)
		switch {
		case bytes.HasPrefix(key, []byte("cpu")) && len(key) > 3:
			id, ok := ParseUint(key[3:])
			if !ok || id > maxCPUs {
				return fmt.Errorf("%.20q: %w", key, ErrFormat)
			}
			if cpu == nil {
				continue
			}
			if err := readTicks(key, rest, &ticks); err != nil {
				return err
			}
			cpu(int(id), &ticks)
		case interrupt != nil && string(key) == "intr":
			if err := eachInterrupt(rest, interrupt); err != nil {
				return err
			}
		case switches != nil && string(key) == "ctxt":
			number, _ := word(rest)
			if n, ok := ParseUint(number); ok {
				switches(n)
			}
		}
	}
	return nil
}

// readTicks reads the columns of a processor's line, in ticks. idle, the fourth, has always
// existed; kernels before 2.6.11 end at softirq.
func readTicks(key, rest []byte, into *[StatModes]uint64) error {
	*into = [StatModes]uint64{}
	for i := range into {
		var number []byte
		number, rest = word(rest)
		if len(number) == 0 && i > TicksIdle {
			return nil
		}
		var ok bool
		if into[i], ok = ParseUint(number); !ok {
			return fmt.Errorf("%.20q column %d: %w", key, i, ErrFormat)
		}
	}
	return nil
}

// eachInterrupt reads "total irq0 irq1 …". The architecture's own interrupts (local timer,
// rescheduling, function calls) have no number: they are in the total but in no column.
func eachInterrupt(rest []byte, each func(number int, n uint64)) error {
	_, rest = word(rest)
	for i := 0; ; i++ {
		var number []byte
		if number, rest = word(rest); len(number) == 0 {
			return nil
		}
		n, ok := ParseUint(number)
		if !ok {
			return fmt.Errorf("interrupt %d %.20q: %w", i, number, ErrFormat)
		}
		each(i, n)
	}
}

// EachSoftnet reads /proc/net/softnet_stat ([ParseSoftnet]) and calls each for every CPU.
func EachSoftnet(b []byte, each func(line *SoftnetLine)) error {
	return eachSoftnetRow(b, func(cpu int, values []uint64) {
		var all [softnetMost]uint64
		copy(all[:], values)
		each(&SoftnetLine{CPU: cpu, Processed: all[0], Dropped: all[1], TimeSqueeze: all[2], ReceivedRPS: all[9],
			FlowLimit: all[10]})
	})
}

// softnetMost is the number of columns of softnet_stat that are read.
const softnetMost = 13

// eachSoftnetRow calls each with the existing columns of every line, and the number of its CPU.
// That is the number in the line, or else the line's own number, because kernels without that
// column skip offline CPUs without a trace. The columns are reused.
func eachSoftnetRow(b []byte, each func(cpu int, values []uint64)) error {
	var values [softnetMost]uint64
	for number := uint64(0); len(b) > 0; number++ {
		var line []byte
		line, b = cutLine(b)
		if len(bytes.TrimSpace(line)) == 0 {
			number--
			continue
		}
		n := 0
		for ; n < len(values); n++ {
			var column []byte
			if column, line = word(line); len(column) == 0 {
				break
			}
			var ok bool
			if values[n], ok = parseHex(column); !ok {
				return fmt.Errorf("column %d %.20q: %w", n, column, ErrFormat)
			}
		}
		if n < 3 {
			return fmt.Errorf("%d columns: %w", n, ErrFormat)
		}
		cpu := number
		if n == softnetMost {
			cpu = values[softnetMost-1]
		}
		if cpu > maxCPUs {
			return fmt.Errorf("processor %d: %w", cpu, ErrFormat)
		}
		each(int(cpu), values[:n])
	}
	return nil
}

// EachSoftIRQ reads the lines NET_RX and NET_TX of /proc/softirqs ([ParseSoftIRQs]) and calls each
// for every CPU in both, in the order of the columns. cpus is memory that the caller keeps for the
// numbers of the CPUs.
func EachSoftIRQ(b []byte, cpus []int, each func(receive bool, cpu int, n uint64)) ([]int, error) {
	head, b := cutLine(b)
	cpus = cpus[:0]
	for {
		var column []byte
		if column, head = word(head); len(column) == 0 {
			break
		}
		number, named := bytes.CutPrefix(column, []byte("CPU"))
		id, ok := ParseUint(number)
		if !named || !ok || id > maxCPUs {
			return cpus, fmt.Errorf("column %.20q: %w", column, ErrFormat)
		}
		cpus = append(cpus, int(id))
	}
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		label, rest := word(line)
		receive := string(label) == "NET_RX:"
		if !receive && string(label) != "NET_TX:" {
			continue
		}
		for _, cpu := range cpus {
			var number []byte
			number, rest = word(rest)
			n, ok := ParseUint(number)
			if !ok {
				return cpus, fmt.Errorf("%s of CPU %d: %w", label, cpu, ErrFormat)
			}
			each(receive, cpu, n)
		}
	}
	return cpus, nil
}

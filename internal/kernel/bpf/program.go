package bpf

import "encoding/binary"

// program assembles instructions of BPF (Documentation/bpf/standardization/instruction-set.rst).
// Registers: 0 result, 1 to 5 arguments, 6 to 9 kept over calls, 10 the stack.
type program []byte

// Numbers of helpers, of include/uapi/linux/bpf.h.
const (
	helperLookup  = 1
	helperUpdate  = 2
	helperDelete  = 3
	helperTime    = 5 // ktime_get_ns
	helperCPU     = 8
	helperTask    = 14 // current_pid_tgid
	helperStackID = 27
	helperPrint   = 165 // bpf_snprintf
)

//go:noinline // a program is written once a recording, and 103 copies took 21 kB
func (p *program) emit(code, dst, src uint8, off int16, imm int32) {
	b := binary.NativeEndian.AppendUint16([]byte{code, dst | src<<4}, uint16(off))
	*p = append(*p, binary.NativeEndian.AppendUint32(b, uint32(imm))...)
}

func (p *program) set(dst uint8, imm int32)                { p.emit(0xb7, dst, 0, 0, imm) }
func (p *program) move(dst, src uint8)                     { p.emit(0xbf, dst, src, 0, 0) }
func (p *program) move32(dst, src uint8)                   { p.emit(0xbc, dst, src, 0, 0) }
func (p *program) add(dst, src uint8)                      { p.emit(0x0f, dst, src, 0, 0) }
func (p *program) addNumber(dst uint8, imm int32)          { p.emit(0x07, dst, 0, 0, imm) }
func (p *program) sub(dst, src uint8)                      { p.emit(0x1f, dst, src, 0, 0) }
func (p *program) or(dst, src uint8)                       { p.emit(0x4f, dst, src, 0, 0) }
func (p *program) load(dst, src uint8, off int16)          { p.emit(0x79, dst, src, off, 0) }
func (p *program) store(dst uint8, off int16, src uint8)   { p.emit(0x7b, dst, src, off, 0) }
func (p *program) store32(dst uint8, off int16, src uint8) { p.emit(0x63, dst, src, off, 0) }
func (p *program) call(helper int32)                       { p.emit(0x85, 0, 0, 0, helper) }

// table loads the descriptor of a map.
func (p *program) table(dst uint8, fd int) {
	p.emit(0x18, dst, 1, 0, int32(fd)) // BPF_PSEUDO_MAP_FD
	p.emit(0, 0, 0, 0, 0)
}

// value loads the address of the only value of an array.
func (p *program) value(dst uint8, fd int) {
	p.emit(0x18, dst, 2, 0, int32(fd)) // BPF_PSEUDO_MAP_VALUE
	p.emit(0, 0, 0, 0, 0)
}

// number loads 64 bits.
func (p *program) number(dst uint8, v uint64) {
	p.emit(0x18, dst, 0, 0, int32(uint32(v)))
	p.emit(0, 0, 0, 0, int32(uint32(v>>32)))
}

// jump is a conditional jump whose target is set later.
type jump struct {
	p  *program
	at int
}

// Codes of jumps that compare with a number, and with a register.
const (
	ifEqual       = 0x15
	ifUnequal     = 0x55
	ifNegative    = 0xc5 // signed less than
	ifOther       = 0x5d // unequal registers
	always        = 0x05
	bytesPerInstr = 8
)

func (p *program) branch(code, dst, src uint8, imm int32) jump {
	p.emit(code, dst, src, 0, imm)
	return jump{p, len(*p)/bytesPerInstr - 1}
}

// here sets the target of jumps to the next instruction.
func (p *program) here(jumps ...jump) {
	next := len(*p) / bytesPerInstr
	for _, j := range jumps {
		binary.NativeEndian.PutUint16((*p)[j.at*bytesPerInstr+2:], uint16(next-j.at-1))
	}
}

// end returns 0, where the given jumps lead.
func (p *program) end(jumps ...jump) {
	p.here(jumps...)
	p.set(0, 0)
	p.emit(0x95, 0, 0, 0, 0)
}

// lookup finds the value whose key is at an offset of the stack; the jump is taken when there is
// none.
func (p *program) lookup(fd int, key int16) jump {
	p.table(1, fd)
	p.move(2, 10)
	p.addNumber(2, int32(key))
	p.call(helperLookup)
	return p.branch(ifEqual, 0, 0, 0)
}

// accumulate adds register 8 and one run to the pair of numbers at register 0.
func (p *program) accumulate() {
	p.load(1, 0, 0)
	p.add(1, 8)
	p.store(0, 0, 1)
	p.load(1, 0, 8)
	p.addNumber(1, 1)
	p.store(0, 8, 1)
}

// softIRQRaise notes the time at which a softirq is wanted on this CPU, unless it waits already.
func softIRQRaise(raised int) program {
	var p program
	p.load(6, 1, 0)
	p.store32(10, -4, 6)
	none := p.lookup(raised, -4)
	p.move(7, 0)
	p.load(8, 7, 0)
	waits := p.branch(ifUnequal, 8, 0, 0)
	p.call(helperTime)
	p.store(7, 0, 0)
	p.end(none, waits)
	return p
}

// softIRQEntry notes the time at which a softirq begins on this CPU, and adds the time since it was
// raised to the sum of its delays.
func softIRQEntry(starts, raised, delays int) program {
	var p program
	p.load(6, 1, 0)
	p.store32(10, -4, 6)
	none := p.lookup(starts, -4)
	p.move(7, 0)
	p.call(helperTime)
	p.store(7, 0, 0)
	p.move(9, 0)
	noRaise := p.lookup(raised, -4)
	p.move(7, 0)
	p.load(8, 7, 0)
	never := p.branch(ifEqual, 8, 0, 0) // it was raised before the watcher
	p.set(1, 0)
	p.store(7, 0, 1)
	p.sub(9, 8)
	p.move(8, 9)
	noSum := p.lookup(delays, -4)
	p.accumulate()
	p.end(none, noRaise, never, noSum)
	return p
}

// softIRQExit adds the time since then to the softirq's sum.
func softIRQExit(starts, sums int) program {
	var p program
	p.load(6, 1, 0)
	p.store32(10, -4, 6)
	none := p.lookup(starts, -4)
	p.move(7, 0)
	p.load(8, 7, 0)
	early := p.branch(ifEqual, 8, 0, 0) // it began before the watcher
	p.set(1, 0)
	p.store(7, 0, 1)
	p.call(helperTime)
	p.sub(0, 8)
	p.move(8, 0)
	noSum := p.lookup(sums, -4)
	p.accumulate()
	p.end(none, early, noSum)
	return p
}

// waiter puts the key of the running task at offset −8 of the stack: its thread, or its CPU for
// idle tasks, which all have number 0.
func (p *program) waiter() {
	p.move(6, 1)
	p.call(helperTask)
	p.move32(7, 0)
	task := p.branch(ifUnequal, 7, 0, 0)
	p.call(helperCPU)
	p.move(7, 0)
	p.number(1, 1<<63)
	p.or(7, 1)
	p.here(task)
	p.store(10, -8, 7)
}

// waitBegin notes time, lock and kind of a wait.
func waitBegin(waiting int) program {
	var p program
	p.waiter()
	p.call(helperTime)
	p.store(10, -32, 0)
	p.load(1, 6, 0)
	p.store(10, -24, 1)
	p.load(1, 6, 8)
	p.store(10, -16, 1)
	p.table(1, waiting)
	p.move(2, 10)
	p.addNumber(2, -8)
	p.move(3, 10)
	p.addNumber(3, -32)
	p.set(4, 0)
	p.call(helperUpdate)
	p.end()
	return p
}

// waitEnd adds the time of a wait to the sum of its stack and kind.
func waitEnd(waiting, stacks, sums int) program {
	var p program
	p.waiter()
	none := p.lookup(waiting, -8)
	p.load(1, 0, 8)
	p.load(2, 6, 0)
	other := p.branch(ifOther, 1, 2, 0) // of a lock inside this one
	p.load(8, 0, 0)
	p.load(9, 0, 16)
	p.call(helperTime)
	p.sub(0, 8)
	p.move(8, 0)
	p.table(1, waiting)
	p.move(2, 10)
	p.addNumber(2, -8)
	p.call(helperDelete)
	p.move(1, 6)
	p.table(2, stacks)
	p.set(3, 0)
	p.call(helperStackID)
	failed := p.branch(ifNegative, 0, 0, 0)
	got := p.branch(always, 0, 0, 0)
	p.here(failed)
	p.set(0, -1) // no room for the stack
	p.here(got)
	p.store32(10, -16, 0)
	p.store32(10, -12, 9)
	first := p.lookup(sums, -16)
	p.accumulate()
	done := p.branch(always, 0, 0, 0)
	p.here(first)
	p.store(10, -32, 8)
	p.set(1, 1)
	p.store(10, -24, 1)
	p.table(1, sums)
	p.move(2, 10)
	p.addNumber(2, -16)
	p.move(3, 10)
	p.addNumber(3, -32)
	p.set(4, 0)
	p.call(helperUpdate)
	p.end(none, other, done)
	return p
}

// sharedBytes is the memory that a program for names shares with its reader. A name has at most 511
// octets (KSYM_NAME_LEN), a module 55.
const sharedBytes = 1 << 10

// printName prints the function at the address in front of the shared memory behind it, and returns
// the length of the text.
func printName(shared, format int) program {
	var p program
	p.value(4, shared)
	p.move(1, 4)
	p.addNumber(1, 8)
	p.set(2, sharedBytes-8)
	p.value(3, format)
	p.set(5, 8)
	p.call(helperPrint)
	p.emit(0x95, 0, 0, 0, 0)
	return p
}

package record

import (
	"time"

	"github.com/linerate/linerate/internal/kernel/perf"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/program"
)

// Bounds of naming the functions of programs.
const (
	// mostRunning processes are looked at; samples of others have the name of the process alone.
	mostRunning = 1024
	// deepest is how many callers of a program a stack keeps.
	deepest = 64
	// rereadAfter is how old the parts of a process must be before an unknown address makes them be
	// read again: it may have loaded a library meanwhile.
	rereadAfter = time.Second
)

// running is a process whose functions are named; nil parts: they cannot be read.
type running struct {
	parts *program.Process
	read  time.Time
}

// program appends the functions of an interrupted program to the chain, leaf first.
func (r *recording) program(s perf.Sample) {
	addresses := s.Program
	if len(addresses) == 0 {
		addresses = []uint64{s.IP}
	}
	for i, address := range addresses[:min(deepest, len(addresses))] {
		if i > 0 {
			address-- // a return address may be the start of the next function
		}
		name, file, ok := r.function(s.PID, address)
		if !ok {
			return // a chain without frame pointers ends anywhere
		}
		r.chain = append(r.chain, r.builder.Frame(profile.Frame{Name: name, Module: file, Kind: profile.UserFrame}))
	}
}

// function names an address of a process.
func (r *recording) function(pid int, address uint64) (name, file string, ok bool) {
	p := r.running[pid]
	if p == nil {
		if len(r.running) >= mostRunning {
			return "", "", false
		}
		if r.running == nil {
			r.running = make(map[int]*running)
		}
		p = &running{}
		r.running[pid] = p
	}
	if p.parts != nil {
		if name, file, ok = p.parts.Resolve(address); ok {
			return name, file, ok
		}
	}
	if time.Since(p.read) < rereadAfter {
		return "", "", false
	}
	p.read = time.Now()
	parts, err := r.files.Open(pid)
	if err != nil {
		return "", "", false // it has ended, or belongs to another user
	}
	p.parts = parts
	return p.parts.Resolve(address)
}

package lab

import (
	"fmt"
	"io"
	"os"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// ourName is the name by which the binary starts itself again.
const ourName = "linerate"

// ExitError reports a command in a host that ended with a status other than zero, or by a signal.
type ExitError struct {
	Name   string
	Code   int // -1: ended by a signal
	Signal int
}

func (e *ExitError) Error() string {
	if e.Signal != 0 {
		return fmt.Sprintf("%s: ended by signal %d", e.Name, e.Signal)
	}
	return fmt.Sprintf("%s: exit status %d", e.Name, e.Code)
}

// Cmd is a command to run in a host, used like os/exec.Cmd: set the fields, then call Run, Output,
// or Start and Wait. It runs in a process group of its own. If its stdin is this process's
// terminal, it has the terminal to itself until it ends.
type Cmd struct {
	Args   []string  // Args[0] "linerate" is this binary; other names are looked up in PATH
	Env    []string  // added to the environment of the process that made the world
	Dir    string    // empty: the directory of that process
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: discarded
	Stderr io.Writer // nil: discarded

	host *Host
	run  *run
}

// Host is one host of a running world.
type Host struct {
	Name    string
	Address string // IPv4, by which other hosts reach it
	PID     int    // of its agent, as seen by the process that made the world: for nsenter(1)

	agent *remote
}

// Running is a world that is up.
type Running struct {
	World    scenario.World
	Hosts    []*Host
	Warnings []string // how its hosts fall short of whole hosts on this machine, one sentence each

	user      bool   // in a user namespace
	inMachine string // the host in the network namespace of the maker
	hub       *remote
	process   *os.Process
	ended     chan struct{} // closed when the hub has been waited for
}

// Host returns a host by name, or nil if the world does not have it.
func (r *Running) Host(name string) *Host {
	for _, h := range r.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Near returns the host on which commands run.
func (r *Running) Near() *Host { return r.Host("near") }

// Far returns the host that answers.
func (r *Running) Far() *Host { return r.Host("far") }

package lab

import (
	"fmt"
	"io"
	"os"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// ourName is the name under which the binary is started again.
const ourName = "linerate"

// ExitError is a command in a host that ended with a status other than zero, or by a signal.
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

// Cmd is a command to run in a host, used like os/exec.Cmd: set the fields, then Run, Output, or
// Start and Wait. It runs in a process group of its own; when its stdin is this process's terminal
// it has that to itself until it ends.
type Cmd struct {
	Args   []string  // Args[0] "linerate" is our own binary; anything else is looked up in PATH
	Env    []string  // added to the environment of the process that made the world
	Dir    string    // empty: where that process is
	Stdin  io.Reader // nil: nothing
	Stdout io.Writer // nil: thrown away
	Stderr io.Writer // nil: thrown away

	host *Host
	run  *run
}

// Host is one host of a running world.
type Host struct {
	Name    string
	Address string // IPv4, by which the others reach it
	PID     int    // of its agent, as seen by the process that made the world: for nsenter(1)

	agent *remote
}

// Running is a world that is up.
type Running struct {
	World    scenario.World
	Hosts    []*Host
	Warnings []string // what falls short of a whole host here, one sentence each

	user      bool   // in a user namespace
	inMachine string // the host in the network namespace of the maker
	hub       *remote
	process   *os.Process
	ended     chan struct{} // closed when the hub has been waited for
}

// Host gives a host by name; nil if the world has none.
func (r *Running) Host(name string) *Host {
	for _, h := range r.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Near is the host on which commands are given.
func (r *Running) Near() *Host { return r.Host("near") }

// Far is the host that answers.
func (r *Running) Far() *Host { return r.Host("far") }

//go:build !linux

package lab

import (
	"context"
	"io"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
)

type (
	remote struct{}
	run    struct{}
)

// RunHost answers ErrNotSupported.
func RunHost(context.Context) error { return ErrNotSupported }

// Up answers ErrNotSupported.
func Up(context.Context, scenario.World) (*Running, error) { return nil, ErrNotSupported }

func upIn(context.Context, scenario.World, string) (*Running, error) { return nil, ErrNotSupported }

func (*Running) carriers(context.Context) error { return ErrNotSupported }

// SetLink answers ErrNotSupported.
func (*Running) SetLink(context.Context, scenario.Link) error { return ErrNotSupported }

// LinkCounts answers ErrNotSupported.
func (*Running) LinkCounts(context.Context) (link.Counts, error) {
	return link.Counts{}, ErrNotSupported
}

// Serve starts the far end of a world.
func (*Running) Serve(context.Context, string, string, io.Writer) (func(), error) {
	return nil, ErrNotSupported
}

// Enter gives nothing.
func (*Running) Enter(*Host) string { return "" }

// Close does nothing.
func (*Running) Close() error { return nil }

// Command gives a command that cannot start.
func (h *Host) Command(_ context.Context, args ...string) *Cmd { return &Cmd{Args: args, host: h} }

// Exec gives a command that cannot start.
func (h *Host) Exec(_ context.Context, args ...string) *Cmd { return &Cmd{Args: args, host: h} }

// Start answers ErrNotSupported.
func (*Cmd) Start() error { return ErrNotSupported }

// Wait answers ErrNotSupported.
func (*Cmd) Wait() error { return ErrNotSupported }

// Run answers ErrNotSupported.
func (*Cmd) Run() error { return ErrNotSupported }

// Output answers ErrNotSupported.
func (*Cmd) Output() ([]byte, error) { return nil, ErrNotSupported }

// CPU knows nothing.
func (*Cmd) CPU() time.Duration { return 0 }

// Signal answers ErrNotSupported.
func (*Cmd) Signal(syscall.Signal) error { return ErrNotSupported }

// Set answers ErrNotSupported.
func (*Host) Set(context.Context, ...scenario.Setting) error { return ErrNotSupported }

// Settings answers ErrNotSupported.
func (*Host) Settings(context.Context) (map[string]string, error) { return nil, ErrNotSupported }

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

// RunHost returns ErrNotSupported.
func RunHost(context.Context) error { return ErrNotSupported }

// Up returns ErrNotSupported.
func Up(context.Context, scenario.World) (*Running, error) { return nil, ErrNotSupported }

func upIn(context.Context, scenario.World, string) (*Running, error) { return nil, ErrNotSupported }

func (*Running) carriers(context.Context) error { return ErrNotSupported }

// SetLink returns ErrNotSupported.
func (*Running) SetLink(context.Context, scenario.Link) error { return ErrNotSupported }

// LinkCounts returns ErrNotSupported.
func (*Running) LinkCounts(context.Context) (link.Counts, error) {
	return link.Counts{}, ErrNotSupported
}

// Serve returns ErrNotSupported.
func (*Running) Serve(context.Context, string, string, io.Writer) (func(), error) {
	return nil, ErrNotSupported
}

// Enter returns an empty command.
func (*Running) Enter(*Host) string { return "" }

// Close does nothing.
func (*Running) Close() error { return nil }

// Command returns a command that cannot start.
func (h *Host) Command(_ context.Context, args ...string) *Cmd { return &Cmd{Args: args, host: h} }

// Exec returns a command that cannot start.
func (h *Host) Exec(_ context.Context, args ...string) *Cmd { return &Cmd{Args: args, host: h} }

// Start returns ErrNotSupported.
func (*Cmd) Start() error { return ErrNotSupported }

// Wait returns ErrNotSupported.
func (*Cmd) Wait() error { return ErrNotSupported }

// Run returns ErrNotSupported.
func (*Cmd) Run() error { return ErrNotSupported }

// Output returns ErrNotSupported.
func (*Cmd) Output() ([]byte, error) { return nil, ErrNotSupported }

// CPU returns 0.
func (*Cmd) CPU() time.Duration { return 0 }

// Signal returns ErrNotSupported.
func (*Cmd) Signal(syscall.Signal) error { return ErrNotSupported }

// Set returns ErrNotSupported.
func (*Host) Set(context.Context, ...scenario.Setting) error { return ErrNotSupported }

// Settings returns ErrNotSupported.
func (*Host) Settings(context.Context) (map[string]string, error) { return nil, ErrNotSupported }

//go:build !linux

package nameserver

import (
	"context"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// Server is a running name server.
type Server struct {
	PID int
	Dir string
}

// Find returns knob.ErrNotSupported.
func Find(Kind, string) (Server, error) { return Server{}, knob.ErrNotSupported }

// Restart returns knob.ErrNotSupported.
func Restart(context.Context, Kind, string) error { return knob.ErrNotSupported }

// CPU returns knob.ErrNotSupported.
func (Server) CPU() (map[int]time.Duration, error) { return nil, knob.ErrNotSupported }

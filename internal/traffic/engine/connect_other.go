//go:build !linux

package engine

import "github.com/linerate/linerate/internal/kernel/sys"

var errConnect = &sys.UnsupportedError{Feature: "connection tests"}

// Acceptor is the far end of a connection test.
type Acceptor struct{}

// NewConnector is not supported on this system.
func NewConnector(*Phase, ConnectOptions) (*Worker, error) { return nil, errConnect }

// NewAcceptor is not supported on this system.
func NewAcceptor(*Phase, AcceptOptions) (*Worker, *Acceptor, error) { return nil, nil, errConnect }

// Port returns 0.
func (a *Acceptor) Port() uint16 { return 0 }

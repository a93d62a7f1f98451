//go:build !linux

package engine

import "github.com/linerate/linerate/internal/kernel/sys"

var errConnect = &sys.UnsupportedError{Feature: "connection tests"}

// Acceptor is the far side of a connection test.
type Acceptor struct{}

// NewConnector is not supported here.
func NewConnector(*Phase, ConnectOptions) (*Worker, error) { return nil, errConnect }

// NewAcceptor is not supported here.
func NewAcceptor(*Phase, AcceptOptions) (*Worker, *Acceptor, error) { return nil, nil, errConnect }

// Port is 0.
func (a *Acceptor) Port() uint16 { return 0 }

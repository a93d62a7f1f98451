//go:build !linux

package world

import (
	"context"
	"errors"
	"io"
	"net/netip"
)

// Room is a closed world with one recursor.
type Room struct{}

// Open returns an error: the world needs Linux.
func Open(context.Context, Recursor, string, []string, int) (*Room, error) {
	return nil, errors.ErrUnsupported
}

// Config returns nothing.
func (*Room) Config() string { return "" }

// Server returns no address.
func (*Room) Server() netip.AddrPort { return netip.AddrPort{} }

// Close does nothing.
func (*Room) Close() {}

// watchDirectory returns an error likewise.
func watchDirectory(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

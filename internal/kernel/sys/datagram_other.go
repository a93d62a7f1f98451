//go:build !linux

package sys

import (
	"net"
	"net/netip"
	"time"
)

// Batched datagrams exist on Linux only; other systems send them one by one through package net.
// This file has only the functions that portable code uses.

// ShareLocalPort is not supported.
func ShareLocalPort(int) error { return errRawSocket }

// TakeOverDatagram is not supported: connections remain with package net. It leaves conn open.
func TakeOverDatagram(*net.UDPConn) (int, error) { return -1, errRawSocket }

// OpenDatagram is not supported: datagrams remain with package net.
func OpenDatagram(netip.AddrPort, netip.AddrPort, DatagramOptions) (int, error) {
	return -1, errRawSocket
}

// DatagramOptions are socket options of a UDP socket that must be set before it is bound or
// connected; none are supported here.
type DatagramOptions struct{ Shared bool }

// SleepUntil sleeps until the monotonic clock (see [Monotonic]) reads at.
func SleepUntil(at time.Duration) { time.Sleep(at - Monotonic()) }

// SetExactTimers is not supported.
func SetExactTimers() error { return &UnsupportedError{Feature: "timer slack"} }

// SleepUntilKept is SleepUntil: here it is the Go scheduler that wakes up.
func SleepUntilKept(at time.Duration) { SleepUntil(at) }

//go:build !linux

package sys

import (
	"net"
	"net/netip"
	"time"
)

// Batched datagrams are a matter of Linux; elsewhere they go through package net one by one. Only
// what portable code asks for is here.

// ShareLocalPort says that ports are not shared here.
func ShareLocalPort(int) error { return errRawSocket }

// TakeOverDatagram says that connections stay with package net here. It leaves conn open.
func TakeOverDatagram(*net.UDPConn) (int, error) { return -1, errRawSocket }

// OpenDatagram says that datagrams stay with package net here.
func OpenDatagram(netip.AddrPort, netip.AddrPort, DatagramOptions) (int, error) {
	return -1, errRawSocket
}

// DatagramOptions are socket options of a UDP socket that must be set before it is bound or
// connected; none here.
type DatagramOptions struct{ Shared bool }

// SleepUntil sleeps until the monotonic clock (see [Monotonic]) reads at.
func SleepUntil(at time.Duration) { time.Sleep(at - Monotonic()) }

// SetExactTimers is not supported.
func SetExactTimers() error { return &UnsupportedError{Feature: "timer slack"} }

//go:build !linux

package sys

import (
	"net"
	"net/netip"
	"time"
)

// Bare descriptors are used on Linux only; on other systems the engine uses package net. So all of
// these return an error.

var errRawSocket = &UnsupportedError{Feature: "bare socket descriptors"}

// TakeOver is not supported: connections remain with package net. It leaves conn open.
func TakeOver(*net.TCPConn) (int, error) { return -1, errRawSocket }

// OpenEcho is not supported.
func OpenEcho(_, _ netip.Addr) (int, EchoKind, error) { return -1, "", errRawSocket }

// OpenUDP is not supported: datagrams remain with package net.
func OpenUDP(netip.Addr, netip.AddrPort) (int, error) { return -1, errRawSocket }

// Read is not supported.
func Read(int, []byte) (int, error) { return 0, errRawSocket }

// Write is not supported.
func Write(int, []byte) (int, error) { return 0, errRawSocket }

// Poll is not supported.
func Poll(int, time.Duration) (bool, error) { return false, errRawSocket }

// SendTo is not supported.
func SendTo(int, []byte, netip.AddrPort) error { return errRawSocket }

// Shutdown is not supported.
func Shutdown(int) error { return errRawSocket }

// Close is not supported.
func Close(int) error { return errRawSocket }

// SetTimeout is not supported.
func SetTimeout(int, time.Duration) error { return errRawSocket }

// SetNoDelay is not supported.
func SetNoDelay(int, bool) error { return errRawSocket }

// SetAbortOnClose is not supported.
func SetAbortOnClose(int) error { return errRawSocket }

// SendBufferBytes is not supported.
func SendBufferBytes(int) (int, error) { return 0, errRawSocket }

// ReceiveBufferBytes is not supported.
func ReceiveBufferBytes(int) (int, error) { return 0, errRawSocket }

// SetSendBufferBytes is not supported.
func SetSendBufferBytes(int, int) error { return errRawSocket }

// SetReceiveBufferBytes is not supported.
func SetReceiveBufferBytes(int, int) error { return errRawSocket }

// MaxSegmentBytes is not supported.
func MaxSegmentBytes(int) (int, error) { return 0, errRawSocket }

// Congestion is not supported.
func Congestion(int) (string, error) { return "", errRawSocket }

// SetCongestion is not supported.
func SetCongestion(int, string) error { return errRawSocket }

func probeEcho() error { return errRawSocket }

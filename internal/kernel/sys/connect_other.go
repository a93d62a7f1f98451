//go:build !linux

package sys

import "net/netip"

// Address is a socket address in the kernel's form.
type Address struct{}

// AddressOf returns an empty Address.
func AddressOf(netip.AddrPort) Address { return Address{} }

// AddrPort returns the zero value.
func (a *Address) AddrPort() netip.AddrPort { return netip.AddrPort{} }

// OpenStream is not supported.
func OpenStream(netip.Addr) (int, error) { return -1, errRawSocket }

// Connect is not supported.
func Connect(int, *Address) error { return errRawSocket }

// Disconnect is not supported.
func Disconnect(int) error { return errRawSocket }

// Listen is not supported.
func Listen(int, netip.AddrPort, int) error { return errRawSocket }

// LocalPort is not supported.
func LocalPort(int) (uint16, error) { return 0, errRawSocket }

// Accept is not supported.
func Accept(int, *Address) (int, error) { return -1, errRawSocket }

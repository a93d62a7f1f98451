//go:build !linux

package wire

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// setUserTimeout has no portable counterpart; heartbeats reveal a vanished peer.
func setUserTimeout(*net.TCPConn, time.Duration) {}

// hurry has no portable counterpart.
func hurry(*net.TCPConn) {}

// canRenew is false: on other systems SO_REUSEPORT has other rules or does not exist.
const canRenew = false

func sharePort(syscall.RawConn, int) error { return errors.ErrUnsupported }

func setListenOptions(syscall.RawConn, ListenOptions) error { return errors.ErrUnsupported }

// socketDefaults are not compared if a listener cannot be replaced.
type socketDefaults struct{}

func defaultsOf(*net.TCPListener) socketDefaults { return socketDefaults{} }

func freshDefaults(net.IP) socketDefaults { return socketDefaults{} }

func multipath(*net.TCPListener) bool { return false }

func setDefaults(syscall.RawConn, socketDefaults) {}

func (socketDefaults) restorable() bool { return false }

func (socketDefaults) like(socketDefaults) bool { return true }

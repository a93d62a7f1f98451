package datagram

import (
	"errors"
	"net/netip"
	"time"
)

// SocketOptions are options of one UDP socket. The zero value leaves everything to the host.
type SocketOptions struct {
	WindowBytes  int        // SO_SNDBUF and SO_RCVBUF, as requested (the kernel doubles it and caps it); 0: the host's
	TOS          int        // IP TOS or IPv6 traffic class, 0 to 255
	LocalPort    int        // of Dial; 0: any
	From         netip.Addr // of Dial; the zero value: the route chooses
	DontFragment bool       // datagrams that do not fit the path are an error instead of fragments
	BusyPoll     bool       // spin on the socket instead of sleeping in it
}

// Errors of this package.
var (
	// ErrCorrupt reports payload that differs from what was sent. The UDP checksum did not catch
	// it, so a host is at fault, most often an offload.
	ErrCorrupt = errors.New("payload is not what was sent")
	// ErrTooLong reports a datagram that does not fit the path and must not be fragmented.
	ErrTooLong = errors.New("datagram does not fit the path")
	// ErrBadOptions reports impossible options of a sender or receiver; the text says what is
	// wrong.
	ErrBadOptions = errors.New("impossible datagram options")
)

// wakeEvery bounds the sleep of blocking calls and of the pacer, so that a worker sees the end of
// the test. A shutdown of the socket would wake it too, but dialects still send their last messages
// on the socket.
const wakeEvery = 20 * time.Millisecond

// busyPollFor is how long the kernel spins for a socket with BusyPoll.
const busyPollFor = 50 * time.Microsecond

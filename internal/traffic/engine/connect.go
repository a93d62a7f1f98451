package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

const (
	// maxPrefixBytes bounds what every request of a connection test starts with.
	maxPrefixBytes = 64
	// requestPatience is how long an acceptor waits for the prefix of a request, so that a stranger
	// cannot occupy it by sending byte by byte. After the prefix it is the longest wait for each
	// further piece.
	requestPatience = time.Second
	// maxExchangeBytes bounds request and response of a connection test.
	maxExchangeBytes = 1 << 20
)

// ErrRefused reports a connection that the far end closed without an answer, as an acceptor does
// with requests that lack its prefix.
var ErrRefused = errors.New("closed without an answer")

// ConnectOptions are what a connector does again and again.
type ConnectOptions struct {
	To netip.AddrPort
	// Prefix is the start of every request, at most 64 bytes: it proves to the acceptor that this
	// is no stranger.
	Prefix        []byte
	RequestBytes  int  // after the prefix; with it, 1 to 1 MiB
	ResponseBytes int  // 1 to 1 MiB
	BusyPoll      bool // spin on the socket instead of sleeping in it
	Conn          ConnOptions
}

// AcceptOptions are which clients an acceptor answers, and how.
type AcceptOptions struct {
	Address       netip.Addr // address to listen on; the zero value: every address
	From          netip.Addr // the only client to answer; the zero value: every client that knows the prefix
	Prefix        []byte     // at most 64 bytes
	RequestBytes  int        // after the prefix
	ResponseBytes int
	BusyPoll      bool        // spin on the sockets instead of sleeping in them
	Conn          ConnOptions // of the listening socket: connections inherit them
}

func checkExchange(prefix []byte, request, response int) error {
	switch {
	case len(prefix) > maxPrefixBytes:
		return fmt.Errorf("connection test: a prefix of %d bytes, at most %d", len(prefix), maxPrefixBytes)
	case request < 0 || len(prefix)+request < 1 || len(prefix)+request > maxExchangeBytes:
		return fmt.Errorf("connection test: a request of %d bytes, want 1 to %d", len(prefix)+request, maxExchangeBytes)
	case response < 1 || response > maxExchangeBytes:
		return fmt.Errorf("connection test: a response of %d bytes, want 1 to %d", response, maxExchangeBytes)
	}
	return nil
}

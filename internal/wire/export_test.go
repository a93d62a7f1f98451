package wire

import (
	"io"
	"net"
	"time"
)

// Names for the tests, which live outside the package.
var (
	AppendFrame     = appendFrame
	AppendPreface   = appendPreface
	ParsePreface    = parsePreface
	ParseGreeting   = parseGreeting
	ParseSSHConfig  = parseSSHConfig
	ShellQuote      = shellQuote
	SSHArgs         = SSHTarget.args
	ForceRenew      = (*Listener).renew
	KeyCertificate  = Key.certificate
	PrefaceBytes    = prefaceBytes
	KeyAlphabet     = keyAlphabet
	MaxHalfOpen     = maxHalfOpen
	MaxRequestBytes = maxRequestBytes
	MaxHandshakes   = maxHandshakes
	SilentBeats     = silentBeats
	MaxInboxMessage = maxInboxMessages
)

// NewConnBeating is NewConn with beats of another pace.
func NewConnBeating(rw io.ReadWriteCloser, every time.Duration) *Conn {
	return newConn(rw, nil, nil, MaxMessageBytes, every)
}

// ReadFrame is readFrame with the widest limit.
func ReadFrame(r io.Reader) (Message, int, error) { return readFrame(r, MaxMessageBytes) }

// SocketOf is the present listening socket.
func SocketOf(l *Listener) *net.TCPListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

package wire

import (
	"crypto/tls"
	"io"
	"net"
	"time"
)

// Names for the tests, which are in another package.
var (
	AppendFrame     = appendFrame
	AppendPreface   = appendPreface
	ParsePreface    = parsePreface
	ParseGreeting   = parseGreeting
	ParseSSHConfig  = parseSSHConfig
	Reachable       = reachable
	WholeHello      = wholeHello
	SSHArgs         = SSHTarget.args
	ForceRenew      = (*Listener).renew
	KeyCertificate  = Key.certificate
	PrefaceBytes    = prefaceBytes
	KeyAlphabet     = keyAlphabet
	MaxHalfOpen     = maxHalfOpen
	MaxRequestBytes = maxRequestBytes
	MaxHandshakes   = maxHandshakes
	HelloWithin     = handshakeTimeout
	SilentBeats     = silentBeats
	MaxInboxMessage = maxInboxMessages
	Patient         = patient
)

// NewConnBeating is NewConn with another time between beats.
func NewConnBeating(rw io.ReadWriteCloser, every time.Duration) *Conn {
	return newConn(rw, nil, nil, MaxMessageBytes, every)
}

// ReadFrame is readFrame with the largest limit.
func ReadFrame(r io.Reader) (Message, int, error) { return readFrame(r, MaxMessageBytes) }

// SocketOf returns the present listening socket.
func SocketOf(l *Listener) *net.TCPListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

// ClientConfig is the configuration of TLS of a client.
func ClientConfig(k Key) (*tls.Config, error) { return k.tlsConfig(clientRole, serverRole) }

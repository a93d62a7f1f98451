// Package wire carries control messages and opens data connections between two linerate processes.
//
// # Model
//
// A [Conn] is an authenticated channel of [Message] frames; it beats while idle, so that a peer
// that vanished without a word is noticed. A [Key] is the secret that people carry from one host to
// the other; both identities of mutual TLS follow from it. A [Listener] serves one TCP port for
// everything: control channels ([Dial]) and data connections ([DialData]) that show a [Token] given
// through a control channel; tokens are announced by [Listener.Expect] and their connections wait
// in a [DataQueue]. What a connection must have before it is accepted (a window, a segment size) is
// announced with [Listener.ExpectWith]. [SSH] starts the far end over the user's own ssh; then the
// channel is ssh's standard input and output and no key is needed.
//
// A peer is gone after eight seconds without a byte. A test that floods the path drowns the
// channel, and both ends know of it beforehand: [Conn.Bear] has each bear more silence for that
// time. On Linux the kernel sends again at least once a second what was lost (TCP_RTO_MAX_MS), and
// lets the channel's packets out before those of a load (SO_PRIORITY).
//
// Control channel, after authentication, both ways: frames of
//
//	uint32 big-endian   length n of the body, 0 … MaxMessageBytes
//	n bytes             JSON object {"type":…,"body":…}; n = 0 is a heartbeat and carries nothing
//
// Data connection, from the dialling side, then nothing but payload:
//
//	6 bytes    "LNRD2\n"
//	16 bytes   token
//	2 bytes    big-endian, index of the connection within its test
//
// Far end over ssh: one line "linerate/1 data-port=N\n" on standard output, then frames as above.
//
// # What a stranger can do
//
// Who does not have the key can connect, see the server's certificate (against whose public key it
// may try keys at home; 130 bits are too many), and hold one of 1024 half-open places, of which 32
// shake hands, for five seconds; the source that has most gives way. What it says first is named to
// people, see [Dialect]. No message is parsed before both ends have proved the key: the server's
// side of the handshake ends only after the client's signature, and the length of a frame is
// believed only as far as bytes have come.
//
// Who holds the key can make a Listener's host keep 256 KiB for one minute per channel, the frame
// that is being read, and what the handler of its messages keeps; a channel without a handler 80
// MiB.
//
// # What an idle channel costs
//
// On Linux one goroutine with a stack of 2 KiB, and some 9 KiB of crypto/tls: its two buffers of
// the handshake (3.5 KiB, mostly for the key share of X25519MLKEM768), two AES keys, and the
// connection. Measured in bytes of VmRSS per client of a whole `linerate serve`: 17 000 (16 000 to
// 18 000), where three goroutines with stacks grown by the handshake and by JSON took 60 000.
//
// # Units
//
// Times are time.Duration, sizes are bytes.
//
// # Sources
//
// RFC 8446 (TLS 1.3; §4.4.2 and §4.4.3 for the order of certificate and proof), RFC 8032 (Ed25519),
// RFC 5869 (HKDF), RFC 7301 (ALPN); tcp(7) for TCP_USER_TIMEOUT (Linux 2.6.37), linux/tcp.h for
// TCP_RTO_MAX_MS (Linux 6.15), socket(7) for SO_REUSEPORT (Linux 3.9), SO_PRIORITY and SO_RCVBUF;
// RFC 7323 §2.2 for the window scale; epoll(7) for edge-triggered waiting; ssh(1) for -G (OpenSSH
// 6.8).
//
// # Limits
//
// There is one key per serve and no way to revoke it but to end that serve. The token of a data
// connection travels in the clear: who can read the path may take a place in a running test, not
// more. Renew, ExpectWith, the small stack of an idle channel, TCP_USER_TIMEOUT, TCP_RTO_MAX_MS and
// SO_PRIORITY exist on Linux only; elsewhere heartbeats alone tell a vanished peer. A process that
// is stopped (SIGSTOP) is seen as gone by its peer.
package wire

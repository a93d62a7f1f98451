// Package wire carries control messages and opens data connections between two linerate processes.
//
// # Model
//
// A [Conn] is an authenticated channel of [Message] frames. It sends heartbeats while idle, so that
// a silently vanished peer is noticed. A [Key] is the secret that the user copies from one host to
// the other; both identities of mutual TLS derive from it. A [Listener] serves one TCP port for
// everything: control channels ([Dial]), and data connections ([DialData]) that present a [Token]
// sent over a control channel. [Listener.Expect] announces a token, and its connections wait in a
// [DataQueue]. [Listener.ExpectWith] also announces options that a connection needs before it is
// accepted (a window, a segment size). A [Keyring] holds several keys at one port: the server name
// of TLS (SNI) is the client's [Key.ID], and [Conn.Key] is what it has proved. [Adopt] takes over a
// listening socket that systemd has opened. [SSH] starts the far end over the user's own ssh; the
// channel is then ssh's standard input and output, and needs no key.
//
// A peer is gone after eight seconds without a byte. A test that floods the path starves the
// channel, and both ends know that beforehand: [Conn.Bear] makes each tolerate more silence for
// that time. On Linux the kernel retransmits lost segments at least once a second (TCP_RTO_MAX_MS),
// and sends the channel's packets before those of a load (SO_PRIORITY).
//
// The control channel, after authentication, has frames in both directions:
//
//	uint32 big-endian   length n of the body, 0 … MaxMessageBytes
//	n bytes             JSON object {"type":…,"body":…}; n = 0 is a heartbeat and carries nothing
//
// A data connection begins with these bytes from the dialling side, and then carries only payload:
//
//	6 bytes    "LNRD2\n"
//	16 bytes   token
//	2 bytes    big-endian, index of the connection within its test
//
// The far end over ssh prints one line "linerate/1 data-port=N\n" on standard output, and then
// sends frames as above.
//
// # What an attacker can do
//
// A host without the key can connect, and see the server's certificate; where there are several
// keys it sees one of none of them, unless it knows the name of a key, which crosses the path in
// the clear. It could try keys offline against the certificate's public key, but 130 bits are too
// many. It can hold half-open connections for five seconds, of which the listener allows 1024,
// 128 of them in a handshake; the source with the most connections loses one first. Its first bytes
// are named for the user, see [Dialect]. No message is parsed before both ends have proved the key:
// the server's side of the handshake ends only after the client's signature, and a frame occupies
// memory only for bytes that have arrived.
//
// A host with the key can make a Listener's host keep 256 KiB per channel for two minutes, which is
// the frame being read, and the data that the message handler keeps; on a channel without a handler
// it is 80 MiB.
//
// # The cost of an idle channel
//
// On Linux an idle channel costs one goroutine with a stack of 2 KiB, and some 9 KiB of crypto/tls:
// its two buffers of the handshake (3.5 KiB, mostly for the key share of X25519MLKEM768), two AES
// keys, and the connection. Measured in bytes of VmRSS per client of a whole `linerate serve`: 17
// 000 (16 000 to 18 000), where three goroutines with stacks grown by the handshake and by JSON
// took 60 000.
//
// # Units
//
// Times are time.Duration, sizes are bytes.
//
// # Sources
//
// RFC 8446 (TLS 1.3; §4.4.2 and §4.4.3 for the order of certificate and proof), RFC 8032 (Ed25519),
// RFC 5869 (HKDF), RFC 7301 (ALPN), RFC 6066 §3 (SNI); sd_listen_fds(3); SO_BUF_LOCK (Linux
// 5.14); tcp(7) for TCP_USER_TIMEOUT (Linux 2.6.37), linux/tcp.h for
// TCP_RTO_MAX_MS (Linux 6.15), socket(7) for SO_REUSEPORT (Linux 3.9), SO_PRIORITY and SO_RCVBUF;
// RFC 7323 §2.2 for the window scale; epoll(7) for edge-triggered waiting; ssh(1) for -G (OpenSSH
// 6.8).
//
// # Limits
//
// Package peer ends the validity of a key, and binds the only key of a serve to the first client. A
// [Keyring] without a key lets no new channel of that key in, but ends none. The token of a data
// connection travels in the clear: an attacker who can read the path and send from the address of
// the client (of IPv6: from its /64, see [DataQueue.Admit]) may take a place in a running test, but
// nothing more. Renew, ExpectWith, the small stack of an idle channel, TCP_USER_TIMEOUT,
// TCP_RTO_MAX_MS and SO_PRIORITY exist on Linux only; on other systems only heartbeats reveal a
// vanished peer. To its peer, a stopped process (SIGSTOP) is gone.
package wire

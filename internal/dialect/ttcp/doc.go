// Package ttcp moves bytes without a protocol: it receives from any program that connects and sends
// (ttcp -t, nuttcp without a server, nc), and sends to any program that receives (ttcp -r, nc -l).
//
// # Model
//
// On TCP the sender closes the connection when it is done. On UDP a datagram of at most four bytes
// marks the beginning of the data, and, once data have come, their end; ttcp sends five at the end
// in case some are lost. No message carries the number of datagrams, so a receiver cannot count
// losses.
//
// A [Server] receives over TCP and UDP and sends nothing. [Open] is the sender. Over TCP its result
// is what the far kernel has acknowledged, over UDP only what was sent.
//
// # Units
//
// Payload bytes, seconds, bits per second.
//
// # Sources
//
// The ttcp of 1984 (BRL) as its descendants keep it; nuttcp 6.1.2 (Debian 12), whose client falls
// back to this when no server answers.
//
// # Limits
//
// A server never answers, so forged addresses gain nothing. A table of fixed size holds the UDP
// senders.
package ttcp

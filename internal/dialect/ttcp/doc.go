// Package ttcp moves bare bytes: it receives from anything that connects and sends (ttcp -t, nuttcp
// without a server, nc), and sends to anything that receives (ttcp -r, nc -l).
//
// # Model
//
// There is no protocol. On TCP the sender closes when it is done. On UDP a datagram of four bytes
// and less says that the next ones are data, and when some have come, that they were all; ttcp
// sends five at the end in case that some are lost. Nothing says how many datagrams there were, so
// a receiver cannot tell what was lost.
//
// A [Server] receives by TCP and UDP and sends nothing. [Run] is the sender; over TCP it tells how
// much the far kernel has acknowledged, over UDP only what was sent.
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
// A server never answers, so it is no use to anybody who forges addresses. A table of fixed size
// holds the UDP senders.
package ttcp

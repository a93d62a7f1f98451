// Package service is the frame for servers that strangers may use: it takes connections and
// datagrams at one port, and survives what strangers and shortages do to a listener.
//
// # Model
//
// [Listen] opens TCP and UDP at one port. [Sockets.Serve] hands every connection to a goroutine of
// its own and all datagrams to one, and calls a sweep every second. It ends with its context: then
// both sockets are closed and all goroutines have returned. A server that needs only a part of that
// uses [Receive] or [incoming.Connections], whose rule about errors both follow. [Limited] is the
// log of such a server, and [Rest] is how it waits.
//
// Package admission decides which clients a server admits, and to how much.
//
// # Units
//
// Durations; bytes of payload.
//
// # Sources
//
// RFC 4291 §2.5.5.2 for the IPv4 addresses that a socket for both
// versions returns as IPv6.
//
// # Limits
//
// On Linux a server of datagrams has a thread of its own: it sleeps in the socket while little
// arrives, and naps for at most 4 ms between batches while much does, with arrival times of the
// kernel. Elsewhere each datagram takes one system call and one wake-up of the Go scheduler.
// Package datagram is the fast way for one stream.
package service

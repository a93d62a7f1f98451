// Package service is the frame that servers for strangers stand in: it takes connections and
// datagrams at one port and outlives what strangers and shortages do to a listener.
//
// # Model
//
// [Listen] opens TCP and UDP at one port. [Sockets.Serve] hands every connection to a goroutine of
// its own and all datagrams to one, calls a sweep every second, and ends with its context: then
// both sockets are closed and everybody has returned. Who needs only a part of that takes [Accept]
// or [Receive]. [Limited] is the log of such a server, and [Rest] is how it waits.
//
// Whom a server admits, and to how much, is the affair of package admission.
//
// # Units
//
// Durations; bytes of payload.
//
// # Sources
//
// accept(2) for the errors of a listener that go by: those of the network of one peer, and the lack
// of descriptors or memory; RFC 4291 §2.5.5.2 for the IPv4 addresses that a socket for both
// versions gives as IPv6.
//
// # Limits
//
// Datagrams are taken one per system call, so this is the way for requests and for the data of slow
// dialects; package datagram is the fast one.
package service

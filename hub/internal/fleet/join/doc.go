// Package join gives a host its identity: the first time by an invitation, and then again before
// the last one expires.
//
// # Model
//
// The host makes a key and keeps it. It connects to the hub over TLS 1.3, sees that the hub has the
// authority that the invitation names, and sends its public key with the secret. The hub asks its
// register (package member), signs an identity (package bus), and says where the bus is.
//
// A [Server] answers at the hub. [Join], [Renew] and [Rotate] ask it. A [Home] is what a host keeps
// of its membership: its key, its identity, and where the hub is.
//
// # Protocol
//
// One JSON object a line, one question and one answer a connection, at most 16 KiB and 64 KiB:
//
//	{"op":"join","invitation":"…","secret":"…","key":"U…","machine":"…","name":"…","signature":"…"}
//	{"op":"renew","key":"U…","identity":"eyJ…","machine":"…","signature":"…"}
//	{"op":"rotate","key":"U…","next":"U…","machine":"…","signature":"…","next_signature":"…"}
//
//	{"id":"01J…","identity":"eyJ…","expires":"…","bus":["tls://:7073"],"roots":"…","server_name":"…"}
//	{"refusal":"waiting: …","retry":true}
//
// A signature is one of the key over a text that both ends derive from the TLS session, the
// operation and the keys. It proves that the sender holds the key, and is of no use in another
// session. An address without a host in "bus" is at the host of this address.
//
// # Units
//
// Times are RFC 3339 by the clock of the hub.
//
// # Sources
//
// RFC 8446 §7.5 and RFC 9266 for keying material of a session.
//
// # Limits
//
// 512 connections at a time; the one that has been silent for longest gives way to the next. An
// identity lasts as long as the hub says, 24 hours by default. A host that has an identity needs
// this address only to renew it.
package join

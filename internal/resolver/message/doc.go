// Package message writes DNS queries and checks DNS answers, byte by byte and without allocation.
//
// # Model
//
// A load generator sends the same few octets again and again: only the id and the name change. It
// therefore packs a query once and copies it. What it must do for every message is to check an
// answer: [Check] walks all records, follows every compressed name, and returns either what the
// answer says or the [Kind] of the first fault. An answer with a fault is never accepted.
//
// # Units
//
// Octets. Times to live are in seconds, as on the wire.
//
// # Sources
//
// Messages and compression: RFC 1035 §4. EDNS: RFC 6891. Case of names: RFC 4343. Unknown types:
// RFC 3597. Type numbers: the IANA registry of DNS parameters. The tests compare every verdict with
// golang.org/x/net/dns/dnsmessage.
//
// # Limits
//
// Class IN alone, one question a message. The data of a record is checked where it holds names or
// addresses; other data only has to fit. Signatures are not verified.
package message

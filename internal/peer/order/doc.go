// Package order is the language in which people change settings of many hosts: signed orders, and
// the memory of a host of those that it has taken.
//
// # Model
//
// An [Order] is one step of one change on one host: try (begin a trial), commit, persist, or undo.
// A person signs it with a key that the hub does not have; the hub only forwards it. A host takes
// an order when all of these hold, and each failure has an answer of its own ([Code]):
//
//   - the bytes are the canonical spelling of an order, and enough known keys have signed them
//   - the order names this host, and the time lies between not-before and not-after
//   - its epoch is not lower than the highest that the host has seen
//   - its serial is higher than the last one for the same knob
//
// The [Ledger] keeps the last two and the answers on disk. It records an order before the host acts
// on it, and the answer before the host sends it. An order that arrives again gets the same answer,
// and nothing happens. An order whose answer a crash has lost is not carried out again: the journal
// of the host shows what became of it.
//
// # Bytes
//
// The payload is one JSON object in the spelling of [Order.Encode]. [Parse] accepts no other
// spelling: it encodes what it has read and compares the bytes, so doubled and unknown keys, other
// cases, blanks and invalid UTF-8 are all refused. A signature is Ed25519 over
// "linerate-order-v1\x00" and the payload, as they are. An [Envelope] is the payload in base64 with
// its signatures, at most 4 KiB.
//
// # Units
//
// Times are whole seconds since 1970 UTC; the deadline of a trial is in seconds and counts on the
// host's own clock, from the moment the host applies it.
//
// # Sources
//
// RFC 8032 (Ed25519); RFC 4648 (base64); The Update Framework for keys that sign their successors.
//
// # Limits
//
// A thief of a key can use up epochs and serials, and so keep later orders out until root removes
// the ledger. A host judges the times by its own clock. Keys change only in the host's own file.
package order

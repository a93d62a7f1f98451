// Package member keeps the register of a fleet: who was invited, who joined, and who may not.
//
// # Model
//
// A [Registry] is the state of all invitations and members in memory, and a log of every change on
// disk. A change is on disk before its method returns; changes that arrive together share one sync.
// A record of the log is the new state of one thing, so a log is read by keeping the last of each.
//
// An [Invitation] is a secret with an end and a number of uses. The hub stores its hash only.
// A [Member] is one key of one host. Its states:
//
//	waiting      joined, and a person has to approve it
//	member       has an identity, and gets a new one when it asks
//	quarantined  refused until a person decides, because one machine seems to have two keys, or one
//	             key two machines: a cloned image
//	removed      refused for ever; the entry stays, so that the key is known
//
// A machine is known by a hash that the host makes of its machine id. [Registry.Beat] sees copies
// of a whole disk, whose machine id is the same too: each start of a node draws an instance, and
// two nodes that run at the same time return to theirs in turn.
//
// A hub that lost its log learns its members again: [Registry.Restore] takes an identity that this
// fleet signed. What was revoked is known from the claims of the fleet, which are another file.
//
// # Units
//
// Times are UTC by the clock of the hub. No clock of a host is used.
//
// # Sources
//
// RFC 4648 for the token; durable.Log for the file.
//
// # Limits
//
// A clone that is started after its original has ended for good is not seen: it is the host that
// moved. A host that cannot read its machine id is not compared.
package member

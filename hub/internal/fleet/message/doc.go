// Package message is what hub and hosts say to each other on the bus.
//
// # Model
//
// A node sends a [Beat] every [BeatEvery]. The hub sends an [Ask] to all hosts, a group or one
// host, and each answers with one [Answer] of at most [MostAnswer] bytes. Anything larger is a
// document, which the hub fetches from one host at a time: a [Fetch] is answered by a [Part], and
// the hub asks for the parts after the first by number, so that a host never sends more than the
// hub has asked for.
//
// A [Task] takes time at one host: a signed order, which the node hands to root's agent, or a
// measurement. A host does one after the other, in the order of their arrival, and answers each
// with a [Done].
//
// # Subjects
//
//	lr.up.ID.beat       Beat
//	lr.all.ask …        Ask; the answer goes to lr.up.ID.r.TOKEN
//	lr.h.ID.fetch       Fetch; the parts go to lr.up.ID.r.TOKEN
//	lr.h.ID.renew       the node asks the hub for its identity again
//	lr.h.ID.task        Task; its Done goes to lr.up.ID.t.TOKEN
//
// # Units
//
// Times are milliseconds where a message has them. A hash is that of inventory.Hash.
//
// # Sources
//
// docs/design/0017-fleet.md.
//
// # Limits
//
// A message that a reader does not know is answered by an error, never by silence. Versions of both
// ends differ for ever: a field is added, never given another meaning.
package message

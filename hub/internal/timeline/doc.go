// Package timeline keeps what happened to hosts and when: changes, tune runs, measurements,
// reboots, links, findings, alerts.
//
// # Model
//
// An [Event] is a moment or a span with an id and one line of text; some have a document with the
// details. A [Store] is a directory of events with one writer and any number of readers. An event
// replaces the one with the same id: a change goes from trial to committed, a finding ends. All
// events are also in memory, so that reading needs no disk.
//
// # Directory
//
//	lock                     held by the process that writes
//	events-00000001.log …    segments: logs of package durable, one event as JSON per record; the
//	                         last record of an id counts
//	documents/ID.json        the document of an event, whole
//	damaged-00000001.log     the newest segment with damage that no crash explains
//
// A document is on disk before the event that names it, and an event is on disk when Put returns
// nil. After power loss or kill -9, every event that was put is there with its document; the event
// under way is in its last state or the one before. The store removes segments oldest first, and
// first writes their live events again. An event is therefore always in some segment, and never
// reappears in an older state.
//
// # Bounds
//
// The store drops events that ended longer than Options.KeepFor ago, unless these are more than
// half of all: a clock that is years ahead for a while costs no history. Beyond Options.MaxBytes on
// disk, or [MaxEvents], it drops the oldest with their documents: first those of a kind that takes
// more than half of them, open events last. A refused write (a full disk) is an error of Put, but
// the event stays in memory, and the next Put that succeeds writes it; of those that wait, the
// newest 1000 stay. After a refused write the store never writes to that segment again, because
// its content on disk is unknown.
//
// # Units
//
// Times are UTC, to the millisecond. Sizes are bytes.
//
// # Sources
//
// Package durable for what survives power loss.
//
// # Limits
//
// One writer. The store does not keep a refused document in memory: its event has none until it is
// put again. Sizes are those of file contents, without the overhead of the file system. Damage of a
// failing medium to the last record looks like a torn write.
package timeline

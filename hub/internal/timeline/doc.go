// Package timeline keeps what happened to hosts and when: changes, tune runs, measurements,
// reboots, links that came and went, findings, alerts.
//
// # Model
//
// An [Event] is a moment or a span with an id and one line of text; some have a document that tells
// the rest. A [Store] is a directory of them with one writer and any number of readers. Putting an
// event whose id is there already replaces it: a change goes from trial to committed, a finding
// ends. All events are in memory as well, so that reading needs no disk.
//
// # Directory
//
//	lock                     held by the process that writes
//	events-00000001.log …    segments: logs of package durable with one event as JSON per record; of the same id the last record counts
//	documents/ID.json        the document of an event, whole
//	damaged-00000001.log     a segment that no crash explains, put aside; the newest of them only
//
// A document is on disk before the event that names it, and an event is on disk when Put returns
// nil. So after power loss or kill -9 every event that was put is there, with its document, and of
// the one under way the last state or the one before. Segments are removed oldest first, with the
// events in them that are still of use written again before: at no moment is an event in none, and
// none comes back in an older state.
//
// # Bounds
//
// What ended longer than Options.KeepFor ago goes. Beyond Options.MaxBytes on disk, or [MaxEvents],
// the oldest go with their documents; what lasts still goes last. A refused write (a full disk) is
// an error of Put, but the event is kept in memory and is written with the next Put that succeeds;
// of those that wait, the newest 1000 stay. After a refused write a segment is never written to
// again, because nobody can tell what the disk has of it.
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
// One writer. A document that could not be written is not kept in memory: its event then says that
// there is none, until it is put again. Bytes are those of the files' content; what a file system
// adds to each is not counted. Whatever a failing medium does to the last record looks like a torn
// write.
package timeline

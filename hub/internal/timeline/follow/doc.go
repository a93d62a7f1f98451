// Package follow turns what goes on at a host into the events of a timeline.
//
// # Model
//
// A [Follower] puts events into a store from four sources:
//
//   - the journal, the stored runs and the stored measurements of the host, read by a [Source]:
//     package agent's, in the same process or through its socket. One look a second at the sizes
//     and times of the files tells whether there is anything to read; everything is read once a
//     minute in any case.
//   - readings of package sample, for links and for times without a reading.
//   - findings, as often as somebody has some.
//   - what it remembers: when it was last there, and in which boot, for restarts of the host and
//     for gaps.
//
// # Events
//
//	kind     id                                what
//	change   0007                              the id of the journal; 0007-1763812800 when an older journal had that id for another change
//	run      20261122-130405-7f3a              the id of the run
//	measurement  measurement-20261122-130405-7f3a  one that was typed by hand; those of schedules come from package schedule
//	reboot   boot-…                            the boot id of the kernel
//	gap      gap-1763812800                    when it began, in Unix seconds
//	link     link-1763812800123-eth0-link-up   when, which interface, what; characters that no id has become '_'
//	link     flaps-1763812800-eth0             an interface that changes more than 20 times within ten minutes: one event, until it is quiet for as long
//	finding  finding-rx-ring-overrun-near-1763812800
//
// An id is the same after a restart, so everything may be put again. A change gets its later
// states, and ends when it is seen to be undone; while the command takes it back on this host, the
// event says which command. A run that nobody has stored for a quarter of an hour, and that has no
// end of its own, has ended without a word. A finding lasts from its first report to its last, with
// pauses up to five minutes: one that comes and goes is one event.
//
// # Documents
//
// Of a change linerate.history/1 with it alone, of a run linerate.tune/1 and of a measurement
// linerate.measure/1 as they are stored, of a finding linerate.diagnose/1 with it alone, when it
// was at its worst. Of one that lasts document and figures are not written again for each report.
//
// # Units
//
// Times are UTC; lengths in titles have their unit.
//
// # Sources
//
// Packages journal, runs, sample, diagnose.
//
// # Limits
//
// The journal does not tell when a change was undone: an end is known only of what was undone while
// somebody followed, to the second. The undoing of files alone is not told apart. Events of links
// that come faster than they are written are dropped beyond 1000.
package follow

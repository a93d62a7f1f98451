// Package follow turns what happens on a host into the events of a timeline.
//
// # Model
//
// A [Follower] puts events into a store from four sources:
//
//   - the journal, the stored runs and the stored measurements of the host, read by a [Source] of
//     package agent, in the same process or through its socket. Once a second the follower compares
//     the sizes and times of the files; once a minute it reads everything in any case.
//   - readings of package sample, for links and for times without a reading.
//   - findings, whenever a diagnosis ends.
//   - its own record of when it last ran, and in which boot, for reboots and for gaps.
//
// # Events
//
//	kind     id                                what
//	change   0007                              the id of the journal; 0007-1763812800 when an
//	                                           older journal had that id for another change
//	run      20261122-130405-7f3a              the id of the run
//	measurement  measurement-20261122-130405-7f3a  one from the command line; those of schedules
//	                                           come from package schedule
//	reboot   boot-…                            the boot id of the kernel
//	gap      gap-1763812800                    when it began, in Unix seconds
//	link     link-1763812800123-eth0-link-up   when, which interface, what; characters that ids
//	                                           cannot have become '_'
//	link     flaps-1763812800-eth0             an interface that changes more than 20 times within
//	                                           ten minutes: one event, until it is quiet for as long
//	finding  finding-rx-ring-overrun-near-1763812800
//
// An id is the same after a restart, so the follower may put everything again. A change gets its
// later states, and ends when the follower sees that it is undone; while an undo command exists on
// this host, the event has it. A run without an end that no process has stored for a quarter of an
// hour counts as ended. A finding lasts from its first report to its last, with pauses of up to
// five minutes.
//
// # Documents
//
// A change has linerate.history/1 with it alone. A run has linerate.tune/1 and a measurement
// linerate.measure/1, both as stored. A finding has linerate.diagnose/1 with it alone, at its
// worst. The follower does not rewrite a finding's document and figures for each report.
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
// The journal does not record when a change was undone: the follower knows the end only of changes
// undone while it ran, to the second. It does not distinguish an undo of files alone. It drops link
// events beyond 1000 that come faster than it writes them.
package follow

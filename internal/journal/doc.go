// Package journal changes the settings of a host so that they can always be taken back: after a crash, a power cut, a lost session, or
// a change of mind.
//
// # Model
//
// A Journal is a write-ahead log in the state directory, open in one process at a time. A Change is one knob written once. It begins as a
// trial, which reverts by itself; Commit makes it stay until Undo or reboot. A Guard is a process of its own that outlives the
// writer and takes its trials back. Recover is what a guard, and every start, does with what a crash has left.
//
// One change takes five steps: read the old value; intent on disk; write; read back; "applied" on disk. Undo is the same
// backwards: compare; intent to undo on disk; write; read back; "undone" on disk. A crash between any two leaves a log that, together with
// the knob itself, says what is left to do:
//
//	log says    knob holds   Recover
//	intent      From         notes that the change is over
//	intent      To           puts From back
//	intent      other        within 10 s: takes it for the driver's rounding of To, puts From back; later: someone else's
//	applied     To           trial without owner or past its deadline: puts From back
//	undoing     To           puts From back
//	undoing     From         notes that the change is over
//	any         other        someone else's: leaves it alone, tells, notes that the change is over
//
// Who owns a trial: in Lease mode the open Journal that made it, as seen by the lock; in Deadline mode nobody, it lives until a time on
// CLOCK_BOOTTIME, which goes on while the host is suspended. Changes of another boot are over, because the kernel forgot them.
//
// Changes of one knob stack: A→B, then B→C. Undo goes from the top down. One taken out of the middle writes nothing, and passes
// its old value to the change above it. Change.Original is the first value seen on a knob since boot and never a tuned one.
//
// A name is not enough to know a knob again: what is changed, stacked and put back is the knob of one boot, one network namespace and one
// interface index. A change whose interface is gone, even if another one has its name, is over; one made in another namespace is
// left to those inside.
//
// The guard process is started before the first knob is written and has answered by then: see StartGuard. It is `linerate guard
// --state DIR --mode lease|deadline --session ID --deadline 60s`, in a session of its own, with the end of a pipe that breaks when the
// writer is gone. A writer that lives past the deadline of its lease is ended first (SIGTERM, five seconds, SIGKILL), because it has the lock.
//
// A journal that could not be written once takes no more changes from this process. Putting old values back goes on all the same: it is
// the safe side, and shows at the knob when the log lacks it.
//
// # Units
//
// Values are text in the canonical form of the knob. Deadlines are nanoseconds of CLOCK_BOOTTIME; wall-clock times are for people.
//
// # Files
//
// journal.log is a log of package durable with one JSON object per record (type record); lock holds the writer's process id;
// guard.log is what guards had to say.
//
// # Sources
//
// clock_gettime(2) for CLOCK_BOOTTIME (Linux 2.6.39), setsid(2), proc_pid_oom_score_adj(5), /proc/sys/kernel/random/boot_id.
//
// # Limits
//
// A knob has no compare-and-swap in any kernel: a write of someone else between our reading and our writing, microseconds
// apart, is lost. A guard can be killed; then the next start recovers. Changes of a network namespace can be taken back from inside it
// only. There are no guards on Windows yet. Damage of the last record by a failing disk looks like a torn write.
package journal

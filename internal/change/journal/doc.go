// Package journal changes the settings of a host so that they can always be taken back: after a
// crash, a power cut, a lost session, or a change of mind.
//
// # Model
//
// A Journal is a write-ahead log in the state directory, open in one process at a time. A Change is
// one knob written once. It begins as a trial, which reverts by itself; Commit makes it stay until
// Undo or reboot. A Guard is a process of its own that outlives the writer and takes its trials
// back. Recover is what a guard, and every start, does with what a crash has left.
//
// One change takes five steps: read the old value; intent on disk; write; read back; "applied" on
// disk. Undo is the same backwards: compare; intent to undo on disk; write; read back; "undone" on
// disk. A crash between any two leaves a log that, together with the knob itself, says what is left
// to do:
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
// # Ten seconds of doubt
//
// A driver may round what it is asked (rings to powers of two, coalescing times to a granule), and
// a writer that dies between its write and its note leaves no word of what came out. So one row
// above is a guess: a change whose intent is younger than ten seconds of CLOCK_BOOTTIME, whose knob
// holds neither From nor To, is put back as our own. It follows that somebody else's value can be
// overwritten, apart from the microseconds under Limits, in one case: it was set after the writer
// died half way through that same knob, and before the guard or the next start came, within these
// ten seconds. It is never overwritten silently: before that the undo record has it on disk as To
// (and what was asked as Asked), and the note of the change and of its Outcome names it, the latter
// even if the journal cannot be written.
//
// The guess is made nowhere else. A change that is "applied" or "undoing" has its To from reading
// back, so every other value is foreign; an intent that is older, or dated in the future by the
// clock of another time namespace, is not believed; and the undoing of a guess that is itself
// interrupted compares with the value found, so a later foreign one is left alone. Without the
// guess, the commonest case, a guard that comes milliseconds after kill -9, would take every
// rounded ring for somebody else's and leave it changed.
//
// # Ownership
//
// Who owns a trial: in Lease mode the open Journal that made it, as seen by the lock; in Deadline
// mode nobody, it lives until a time on CLOCK_BOOTTIME, which goes on while the host is suspended.
// Changes of another boot are over, because the kernel forgot them.
//
// Changes of one knob stack: A→B, then B→C. Undo goes from the top down. One taken out of the
// middle writes nothing, and passes its old value to the change above it. Change.Original is the
// first value seen on a knob since boot and never a tuned one.
//
// A name is not enough to know a knob again: what is changed, stacked and put back is the knob of
// one boot, one network namespace and one interface index. An interface that has another name by
// now is found by its index. A change whose interface is gone, even if another one has its name, is
// over; one made in another namespace is left to those inside, and over when that namespace is
// gone.
//
// Commit looks at the knob first: a trial that somebody else has overwritten is ErrForeign, because
// what would stay is not what was tried.
//
// The guard process is started before the first knob is written and has answered by then: see
// StartGuard. It is `linerate guard --state DIR --mode lease|deadline --session ID --deadline 60s`,
// in a session of its own, with the end of a pipe that breaks when the writer is gone, and in a
// control group of its own, so that the end of a login session or a service does not take it along:
// systemd gives one where it runs, else the guard makes one as high up as it may. A writer that
// lives past the deadline of its lease, or of one of its Deadline trials, is ended first (SIGTERM,
// five seconds, SIGKILL), because it has the lock. One that has nothing in trial is left in peace.
//
// A journal that could not be written once takes no more changes from this process. Putting old
// values back goes on all the same: it is the safe side, and shows at the knob when the log lacks
// it.
//
// # Files
//
// A committed change becomes persisted by files that give its knob the value when the host starts
// (Persist). A file is always one of our own making, whole and new; none of somebody else's is ever
// overwritten. Intent with names and contents, files, "persisted": a crash before the last of these
// three leaves a change that is committed, and Recover takes out what there is of its files. A
// persisted change outlives its boot: a restart does not end it, and Undo in a later boot compares
// the knob with the same value as before. Undo takes the files out first, then looks at the knob,
// so that a host that starts again in between comes up without the change. A file is taken out if
// it holds what we wrote; of one that somebody has added lines to, our lines alone go; one in which
// our lines were edited stays, and is told. Where a file cannot be taken out (a read-only /etc),
// the knob goes back all the same, unless a later change stands on it; the change stays open until
// its files are gone.
//
// # Units
//
// Values are text in the canonical form of the knob. Deadlines are nanoseconds of CLOCK_BOOTTIME;
// wall-clock times are for people.
//
// # State directory
//
// journal.log is a log of package durable with one JSON object per record (type record); lock holds
// the writer's process id; guard.log is what guards had to say; notices is what they have taken
// back since the last command, see TakeNotices.
//
// # Sources
//
// clock_gettime(2) for CLOCK_BOOTTIME (Linux 2.6.39), time_namespaces(7) (Linux 5.6), namespaces(7)
// for the names of network namespaces, pipe(7), setsid(2), cgroups(7), org.freedesktop.systemd1(5)
// for StartTransientUnit, proc_pid_oom_score_adj(5), random(4) for /proc/sys/kernel/random/boot_id.
//
// # Limits
//
// A knob has no compare-and-swap in any kernel: a write of someone else between our reading and our
// writing, microseconds apart, is lost. A guard can be killed; then the next start recovers.
// Changes of a network namespace can be taken back from inside it only. Reading back happens right
// after writing, so a value that somebody else set in between is taken for what the system made of
// ours; the note then tells both. The numbers of dead network namespaces come back within a boot,
// see Identity. The times of a change mean nothing in another time namespace. There are no guards
// on Windows yet. Damage of the last record by a failing disk looks like a torn write.
package journal

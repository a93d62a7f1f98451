// Package journal changes the settings of a host so that they can always be taken back: after a
// crash, a power cut, a lost session, or a change of mind.
//
// # Model
//
// A Journal is a write-ahead log in the state directory, open in one process at a time. A Change is
// one write of one knob. It begins as a trial, which reverts automatically; Commit makes it stay
// until Undo or reboot. A Guard is a separate process that outlives the writer and takes its trials
// back. A guard, and every start, calls Recover to finish what a crash has left.
//
// One change takes five steps: read the old value; intent on disk; write; read back; "applied" on
// disk. Undo works the same way: compare; intent to undo on disk; write; read back; "undone" on
// disk. After a crash between any two steps, the log and the knob together show what remains to be
// done:
//
//	log says    knob holds   Recover
//	intent      From         records that the change is over
//	intent      To           restores From
//	intent      other        within 10 s: treats it as the driver's rounding of To, restores From;
//	                         later: foreign
//	applied     To           trial without owner or past its deadline: restores From
//	undoing     To           restores From
//	undoing     From         records that the change is over
//	any         other        foreign: leaves it alone, reports it, records that the change is over
//
// # Ten seconds of doubt
//
// A driver may round a requested value (rings to powers of two, coalescing times to a granule), and
// a writer that dies between its write and its record leaves no note of the result. So one row
// above is a guess: if the intent of a change is younger than ten seconds of CLOCK_BOOTTIME and its
// knob holds neither From nor To, Recover treats the value as our own and restores From. Apart from
// the microseconds under Limits, this is the only case in which a value of another program can be
// overwritten: the writer died half way through that same knob, and the other program set the value
// before the guard or the next start came, within these ten seconds. It is never overwritten
// silently. Before the write, the undo record has it on disk as To (and the requested value as
// Asked), and the notes of the change and of its Outcome name it, the latter even if the journal
// cannot be written.
//
// No other case involves a guess. The To of a change that is "applied" or "undoing" was read back,
// so every other value is foreign. An intent that is older, or dated in the future by the clock of
// another time namespace, gives no benefit of the doubt. If the undoing of a guess is itself
// interrupted, it compares with the value found, so a later foreign value is left alone. Without
// the guess, the most common case, a guard that comes milliseconds after kill -9, would treat every
// rounded ring as foreign and leave it changed.
//
// # Ownership
//
// In Lease mode, the open Journal that made a trial owns it, as the lock shows. In Deadline mode a
// trial has no owner and lasts until a time on CLOCK_BOOTTIME, which keeps running while the host
// is suspended. Changes of another boot are over, because the kernel forgot them.
//
// An option in a file of a program (knob.ID.InFile) is the exception: no restart of the host takes
// it back, so a change of it belongs to every boot. A trial of an earlier boot has lost its guard,
// and Recover takes it back.
//
// Changes of one knob stack: A→B, then B→C. Undo works from the top down. Undoing one in the middle
// writes nothing, and passes its old value to the change above it. Change.Original is the first
// value seen on a knob since boot and never a tuned one.
//
// A name does not identify a knob: a change, and everything stacked on it, belongs to the knob of
// one boot, one network namespace and one interface index. If an interface was renamed, the journal
// finds it by its index. A change whose interface no longer exists is over, even if another
// interface has its name. A change whose interface was moved to another namespace stays open, and
// its note says so: the value moved too. Undo, recovery and the next command take it back when the
// interface is here again, under any name. A change made in another namespace is left to processes
// inside it, and is over when that namespace ends.
//
// Commit reads the knob first: it returns ErrForeign for a trial that another program has
// overwritten, because the remaining value is not the one that was tried.
//
// The guard process starts, and answers, before the first knob is written: see StartGuard. It is
// `linerate guard --state DIR --mode lease|deadline --session ID --deadline 60s`, in its own
// session, with one end of a pipe that breaks when the writer is gone. It also has its own control
// group, so that it survives the end of a login session or a service: where systemd runs, systemd
// provides the group; elsewhere the guard creates one as high in the hierarchy as it may. A writer
// that lives past the deadline of its lease, or of one of its Deadline trials, is ended first
// (SIGTERM, five seconds, SIGKILL), because it holds the lock. A writer with nothing in trial is
// left running.
//
// The guard does not depend on storage. The writer repeats each record on the pipe before it writes
// the knob, so the guard has the session's changes in memory; it also reads the log whenever it
// grows. At the deadline it tries the lock for a second, compares and writes the knobs by what it
// remembers, and brings the journal up to date second, with two seconds for the storage. A value
// that could be a driver's rounding is left to the journal, unless the journal is not available. A
// knob that refuses its old value is tried again for an hour, or until the guard is asked to end. A
// log that vanished, shrank or is damaged is never opened by the guard, which would hide the
// damage; the alarm goes to the terminal, guard.log, syslog(3) and the next command. Open begins a
// new journal only after the guards of the old one have taken back what they remember. The program
// of a guard is locked in memory, because its storage may hang too. Commit checks the clock again
// after its record is on disk, because the guard does not wait for it.
//
// Where systemd runs, each guard keeps a transient timer (systemd-run(1)) that recovers the journal
// after the deadline if the guard itself was killed or stopped. Elsewhere TakeOverdue is the second
// line: every command calls it, and `serve --allow-tuning` every ten seconds.
//
// After one failed write to the journal, this process makes no more changes. It still restores old
// values: that is the safe side, and the knob shows what the log lacks. The records of an undo wait
// two seconds for storage that hangs, and the values go back without them. The lock then stays
// until the kernel gives the write up, because a late record would damage the log of the next
// holder. Open waits for Options.Patience. Without the lock nothing is written: another process may
// be at work. Commands have another process write to the storage first (AwaitStorage). If that one
// hangs, the journal opens without any write: it changes nothing and still restores old values. The
// waits for storage, lock and guard count the time in which this process runs: a pause of any
// length is one of 16 steps.
//
// # Side effects
//
// A write may set other knobs as well ([knob.Coupler]): an intent holds what they held, "applied"
// those that changed, and "undo" what they have to go back to, so that each step can be finished
// after a crash. A side effect is undone with its change if the knob still holds what the write
// left. It stacks like a change of that knob: undone from the middle, it passes its old value to
// the next change, or side effect, of the same knob. Values that a change of another knob on top
// has set are kept over an undo that moves them.
//
// If a coupled knob cannot be put back, the change stays open for one more attempt, because a NIC
// that starts again is busy for a moment; then it ends, and its note names what is missing. Of an
// intent older than ten seconds, only the knob itself goes back. What a driver sets later than the
// read-back counts as another program's. So does, in rare orders, the value of a knob that several
// stacked changes remove and make anew, if they are undone from the middle while the system refuses
// writes (1 of 120 000 random lives with such faults).
//
// # Files
//
// A committed change becomes persisted through files that set its knob when the host starts
// (Persist). Such a file is always new, complete and linerate's own; Persist never overwrites a
// foreign file. The order is: intent with names and contents, files, "persisted". A crash before
// the last of these leaves a committed change, and Recover removes what exists of its files. A
// persisted change outlives its boot: a restart does not end it, and Undo in a later boot compares
// the knob with the same value as before. Undo removes the files first and then reads the knob, so
// that a host that restarts in between comes up without the change. It removes a file that holds
// what we wrote; from a file with added lines it removes only our lines; a file in which our lines
// were edited stays, and Undo reports it. Where a file cannot be removed (a read-only /etc), the
// knob goes back all the same, unless a later change stands on it; the change stays open until its
// files are gone.
//
// # Units
//
// Values are text in the canonical form of the knob. Deadlines are nanoseconds of CLOCK_BOOTTIME;
// wall-clock times are for display.
//
// # State directory
//
// Open refuses a directory, a log or a lock that another user can change (see durable.Truster),
// because undo writes what the journal says. Undo removes and edits only files with linerate's
// names in the directories that package persist uses, whatever the journal says.
//
// journal.log is a marked log of package durable with one JSON object per record (type record), and
// journal.log.mark counts its records, so that a log without its end is noticed, and so is one
// without its mark. lock holds the writer's process id; guard.log is the log of the guards; notices
// lists what they have taken back since the last command, see TakeNotices.
//
// # Sources
//
// clock_gettime(2) for CLOCK_BOOTTIME (Linux 2.6.39), time_namespaces(7) (Linux 5.6), namespaces(7)
// for the names of network namespaces, pipe(7), setsid(2), cgroups(7), org.freedesktop.systemd1(5)
// for StartTransientUnit, proc_pid_oom_score_adj(5), random(4) for /proc/sys/kernel/random/boot_id.
//
// # Limits
//
// No kernel has a compare-and-swap for a knob: if another program writes between our read and our
// write, microseconds apart, its value is lost. A guard can be killed; then systemd's timer or the
// next start recovers. Changes of a network namespace can be taken back only inside it. The
// namespace that an interface was moved to is found if a process is in it or has it mounted, and if
// this process may look: otherwise the change is over, and its note says what was not seen. The
// read-back follows the write at once, so a value that another program sets in between counts as
// the system's rounding of ours; the note then names both values. The kernel reuses the numbers of
// ended network namespaces within a boot, see Identity. The times of a change mean nothing in
// another time namespace. Control groups are those of version 2; systemd is asked through busctl(1)
// and gets two seconds. On Windows no second line replaces a killed guard: the next command does,
// and after a restart of the host too, because a registry keeps what is on trial. After a power
// loss the mark may count too few records, so a failing disk that then damages the last record
// makes it look like a torn write.
package journal

// Package scratch makes temporary directories that do not outlive their runs by more than one run:
// each run removes what killed runs left.
//
// # Model
//
// A [Directory] has a lock, which its run holds until the process ends in any way. [New] and [In]
// first remove the directories whose runs are dead: no process holds the lock, and no command line
// names the directory. A server that still ends has it there, and so does the guard of a trial.
// Directories of all kinds are removed, since a run of one kind may make several.
//
// A process can be killed between any two system calls. So a directory without a lock is empty, at
// its beginning and at its end: its content is removed first, its lock next. An empty directory
// of its own kind goes without a lock, by rmdir(2), and a run that has just made it makes another.
//
// What another user owns stays, and so does a symbolic link. Nothing below a link is opened or
// removed.
//
// # Sources
//
// flock(2), rmdir(2); proc(5) for command lines.
//
// # Limits
//
// A process in another pid namespace is not seen by its command line, only by its lock. Where
// processes cannot be listed, as on systems without /proc, directories of killed runs stay.
package scratch

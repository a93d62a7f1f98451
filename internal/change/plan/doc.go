// Package plan writes the settings that one system, in one role, can still use on one path: as
// commands, as persistent files and as the commands that undo both.
//
// # Model
//
// [ReadSituation] or [OfHost] describes the system, its role, its link, its path and its memory;
// [Make] returns a [Plan] of lines. A line is either set, and then has its commands, its file and
// its undo, or not set, and then has the reason. Two kinds of candidates become lines: the settings
// of a role, whose values follow from the link, the round trip and the memory, and the settings of
// old write-ups for this system, with the values that they had.
//
// Package advice judges every candidate for the release of the plan. A plan sets only what advice
// calls still right, so that there is one truth about what a setting does on which release. [Plan]
// adds what advice cannot know: what the role needs, which value the path needs, what memory
// allows, what the host has already, and how the setting is reached and undone.
//
// Lines are in the order in which they must be applied: a cap comes before what it caps. The undo
// script has them in reverse.
//
// # Undo
//
// [knob.UndoOf] says whether the old value comes back at once, after a restart of the system, or
// only with an interruption of the link. Where the host showed its value, undo restores that;
// otherwise it restores the default of the release, and the head of the script lists the commands
// that show the present values.
//
// # Units
//
// Rates are bits per second, sizes bytes. Values are texts in the form that the system takes.
//
// # Sources
//
// Those of the facts in package advice, which each line carries. sysctl.conf(5) and loader.conf(5)
// of FreeBSD; ipadm(8), dladm(8) and the Solaris Tunable Parameters Reference Manual;
// learn.microsoft.com for netsh, NetAdapter and reg; package persist for the files of Linux. The
// share of memory that buffers may take: tcp_init_mem in net/ipv4/tcp.c for Linux (3/32),
// tunable_mbinit in kern_mbuf.c for FreeBSD (1/8 for clusters of 2 KiB).
//
// # Limits
//
// The plan is made from numbers and reads nothing. It does not know other settings of the host
// unless an inspect document has them. A plan is an opening: measure before and after, and undo
// what does not help. On FreeBSD, Solaris and Windows the package was tested against documentation
// and recorded output, not on these systems.
package plan

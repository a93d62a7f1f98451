// Package owner tells who else manages a host: programs that write the same knobs, and take a
// change back at the next link event, boot or run of theirs.
//
// # Model
//
// [Find] looks at the marks that such programs leave (a directory below /run, a file below /etc)
// and at the names of the running processes, through a [Tree], and answers with an [Owner] for
// each. No program is started and nobody is asked over D-Bus: looking must not change what is
// looked at, and some of these services start when somebody talks to them.
//
// # Units
//
// None; names are those of the programs.
//
// # Sources
//
// tuned(8), tuned.conf(5); irqbalance(1); NetworkManager(8); systemd-networkd.service(8),
// networkctl(1); netplan(5); interfaces(5); the cloud-init documentation on /run/cloud-init;
// proc_pid_comm(5).
//
// # Limits
//
// Linux. Processes of other PID namespaces are not seen: inside of a container the host's
// irqbalance is invisible and nonetheless at work. A program that is configured and not running
// (netplan, ifupdown, cloud-init) is an owner as well: it writes at boot.
package owner

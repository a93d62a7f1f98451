// Package owner finds the other programs that manage a host: they write the same knobs, and undo a
// change at their next link event, boot or run.
//
// # Model
//
// [Find] looks through a [Tree] for the marks that such programs leave (a directory below /run, a
// file below /etc) and for the names of the running processes. It returns an [Owner] for each
// program. It starts no program and sends no D-Bus message: some of these services start when they
// receive one, and a look must not change the host.
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
// Linux. Processes of other PID namespaces are invisible: inside a container the host's irqbalance
// works unseen. A program that is configured but not running (netplan, ifupdown, cloud-init) is an
// owner as well, because it writes at boot.
package owner

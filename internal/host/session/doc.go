// Package session finds the network interface that carries the session in which a command runs, so
// that a change which takes that interface down can be refused before it cuts the user off.
//
// # Model
//
// sshd puts SSH_CONNECTION into the environment of a session: the client's address and port, then
// those of this host. sudo and su drop it, so the environments of the parent processes are asked
// too. The interface with this host's address carries the session, and so does the one that the
// kernel routes to the client: the address may be on lo. With both goes every interface below: the
// ports of a bond or a bridge, the parent of a VLAN.
//
// # Units
//
// None.
//
// # Sources
//
// ssh(1), ENVIRONMENT; proc_pid_environ(5), proc_pid_stat(5);
// Documentation/ABI/testing/sysfs-class-net for lower_* below /sys/class/net.
//
// # Limits
//
// Linux only; elsewhere no session is found. Rules for routing that ask for a mark or a source
// address are not followed. A user who may not read the environment of a parent
// process, and a session over something else than ssh (a terminal on the machine, telnet, a web
// console), have no interface. A session inside tmux or screen is that in which they were started.
package session

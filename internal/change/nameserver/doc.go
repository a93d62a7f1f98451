// Package nameserver reads and changes single options of a recursor that runs on this host: in its
// configuration file, and for BIND's number of workers in its command line.
//
// # Model
//
// [Read] finds an option in the configuration (with the files that it includes) and returns the
// text of its value; an option that the files do not set has the value [Unset]. [Write] replaces
// only the bytes of that value, or inserts or removes one marked line, so that writing the old
// value again gives back the old bytes. A value that this cannot promise for is refused.
//
// Write then asks the program's own checker (named-checkconf, unbound-checkconf; Knot Resolver has
// none), makes the running server take the new file, by reload where that suffices and by restart
// otherwise, waits until it has its sockets, and reads the lines that it has logged since. If one
// of these steps fails, Write puts the old bytes back and returns what the program said.
//
// A restart goes through systemd if that started the server. Any other server is ended and started
// again, with the same command line, directory, environment and log, by a shell in a session of its
// own: if the writer is killed in between, the server still comes back. The shell holds a lock
// until then, so that recovery does not look at a server that is about to end.
//
// # Units
//
// Values are text as in the file, of one line, with single blanks.
//
// # Sources
//
// named.conf(5), named(8), named-checkconf(8); unbound.conf(5), unbound(8); kresd(8) and the
// documentation of Knot Resolver 5.6. Files and processes: proc(5). BIND 9.18.49, Unbound 1.17.1
// and Knot Resolver 5.6.0 of Debian 12 were tried.
//
// # Limits
//
// Linux. Lua that sets options of Knot Resolver in other ways than one assignment or call a line is
// not understood. Of several lines for one option of Unbound or Knot Resolver the last one counts,
// as it does for them. A cache of Knot Resolver outside of its directory is not removed at a
// restart. The log is read only from a file on standard error. Under systemd the number of workers
// of BIND is in the environment of the unit and is not changed. A server in another mount
// namespace, in a chroot, or under another supervisor than systemd is not restarted.
package nameserver

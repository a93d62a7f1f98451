// Package switches keeps the history of switches' ports, and finds what they lose.
//
// # Model
//
// A [Keeper] takes one [mib.Snapshot] after another of one switch, and adds what each counter grew
// by. Ports are identified by name, because many switches number their interfaces anew when they
// start. After a restart, a renumbering, a discontinuity or a reset, a reading adds nothing for the
// port: never too much, sometimes too little. Only 32-bit counters wrap, and one that could wrap
// twice between two readings has no series.
//
// A [Poller] reads each configured switch at its interval, in a goroutine of its own, so that a
// switch that does not answer delays no other. [Keeper.Findings] judges the growth over the last
// minutes; [Join] sets a port's losses beside the verdict of a host that loses packets at no place
// of its own. [Look] reads a switch twice, for people.
//
// # Units
//
// As package mib. Rates are per second over the time between two readings, on this host's clock.
//
// # Sources
//
// RFC 2863 section 3.1.6 (widths of counters), 3.1.5 (ifIndex after a restart) and
// ifCounterDiscontinuityTime; package mib for the rest.
//
// # Limits
//
// [MaxSwitches] switches with [mib.MostPorts] ports. SNMP reads; nothing is ever set. Whether a
// port is on the path of a flow is known from LLDP, the bridge's tables or the configuration, and
// otherwise not known. A trunk at which a bridge has learnt this host is on its path; whether more
// switches are between is not known.
package switches

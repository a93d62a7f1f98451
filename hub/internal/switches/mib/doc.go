// Package mib reads the ports of a switch out of the answers of its SNMP agent.
//
// # Model
//
// [Read] asks an [Agent] for tables, several columns at a time, and joins their rows by ifIndex to
// the [Port]s of a [Snapshot]: names and state, counters with their width, and the neighbours that
// LLDP reports. [Table] walks columns side by side, so that a row's counters come from one answer.
//
// The agent is a stranger. Each column must ascend, or its walk ends. Rows, bytes of a text and
// requests are bounded, and a bound that was reached is a sentence in [Snapshot.Warnings]. Texts
// pass package visible. An agent that restarts while it is read makes [ErrRestarted]: its counters
// belong to two lives.
//
// # Units
//
// Speeds are bits per second. Counters are frames, or bytes where named. Uptime is a duration.
//
// # Sources
//
// RFC 2863 (IF-MIB), RFC 3635 (EtherLike-MIB), RFC 3411 (snmpEngineBoots), RFC 4188 (BRIDGE-MIB),
// RFC 4363 (Q-BRIDGE-MIB) with RFC 4502 (TimeFilter), IEEE 802.1AB-2005 (LLDP-MIB), RFC 3416
// section 4.2.3 (GETBULK: an answer may be cut anywhere).
//
// # Limits
//
// SNMPv2 types, which versions 2c and 3 have. Ports are interfaces of the types Ethernet and
// aggregate, unless the caller chooses. A counter that an agent keeps back (net-snmp refreshes its
// table each 15 s) is as old as the agent's copy; the protocol does not say how old that is.
package mib

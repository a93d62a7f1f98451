// Package freebsd reads what the base programs of FreeBSD print.
//
// # Model
//
// [ParseIfconfig] reads ifconfig, [ParseInterfaces] and [ParseProtocols] the JSON of netstat,
// [ParseInterrupts] the JSON of vmstat, [Assigned] the assignments of loader.conf and rc.conf.
// [CardCounters] sorts the counters of one card, from the sysctls of its driver, by the place where
// packets are lost.
//
// # Units
//
// Packets, bytes and interrupts since boot.
//
// # Sources
//
// ifconfig(8), netstat(1), vmstat(8), libxo(3), em(4); if_em.c for what the counters add up. The
// recordings in testdata name theirs.
//
// # Limits
//
// Text of ifconfig is read in the language C. libxo escapes are those of JSON.
package freebsd

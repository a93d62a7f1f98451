// Package solaris reads what programs and files of illumos and Solaris hold.
//
// # Model
//
// [ParseProperty] reads a line of `ipadm show-prop -c` or `dladm show-linkprop -c`, [Fields] any
// line of their parsable form. [ParseKstat] reads `kstat -p`, and [CardCounters] sorts the
// counters of one card by the place where packets are lost. [Conf] finds and replaces one number
// in a file of driver.conf(5), byte for byte.
//
// # Units
//
// Those of the properties; counters since the driver was attached.
//
// # Sources
//
// ipadm(8), dladm(8), kstat(8), driver.conf(5), e1000g(4D); e1000g_stat.c and igb_stat.c of illumos
// for the names of counters.
//
// # Limits
//
// Numbers alone are replaced in a configuration file, and only where the file has a list for them.
package solaris

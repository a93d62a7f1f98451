// Package unit prints and parses the quantities that linerate uses.
//
// # Model
//
// A [BitRate] is a data rate and a [Bytes] an amount of memory or payload; they are separate types,
// so that the compiler keeps them apart. Seconds, counts and ratios are plain float64 values, as in
// the JSON documents, and have a Format and a Parse function each.
//
// # Units
//
// Rates are bits per second with decimal prefixes, as network equipment counts them. Amounts of
// memory are bytes with binary prefixes, as the kernel counts them. Printed values have three
// significant digits, so Parse(Format(x)) lies within 0.5 % of x; whole numbers of bytes below 10
// 000 and exact binary multiples are printed exactly.
//
// # Sources
//
// Decimal prefixes: the SI brochure, 9th edition. Binary prefixes: IEC 80000-13. A bare K, M or G
// on an amount of bytes is 1024-based as in iperf3's -n and GNU coreutils; KB, MB, GB are
// 1000-based as in coreutils, and KiB, MiB, GiB are unambiguous.
//
// # Limits
//
// "Mbps" means megabit per second, as in every data sheet (tc(8) reads it as megabyte). A rate in
// bytes per second, "MB/s", is refused. NaN prints as "unknown".
package unit

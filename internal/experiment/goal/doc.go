// Package goal says what a tune is to improve and what it may not cost: one objective, and bounds
// on what else is measured.
//
// # Model
//
//	objective = goal [ "where" bound { "and" bound } ]
//	goal      = "throughput" | "latency" | "packets"
//	bound     = term ( "<" | "<=" | ">" | ">=" ) number unit
//
// [Parse] reads it; its error is an [*Error] that points at the place. What contradicts itself is
// an error as well: two objectives, a bound on the wrong side, two bounds that nothing can meet.
// What this path cannot give is for [Objective.Unreachable], after the path was measured.
//
// A term has a good side, and a bound can only ask for that one: p99_rtt<5ms, throughput>1Gb/s. The
// whole list with units is [Terms]. Measured numbers are not exact, so that < and <= mean the same.
//
// # Units
//
// Values are in SI base units: seconds, bits per second, ratios (80 % is 0.8), counts per second,
// counts per gigabyte (10⁹ bytes of payload).
//
// cpu is the share of the busiest single processor of either host, since that is what holds a flow
// back while dozens of others idle; cpu_total is the share of all processors of the busier host.
// rtt is the mean round trip of the loaded flow itself, as its sender's TCP sees it; p50_rtt and
// p99_rtt are of packets beside the load, or of the transactions where those are the load.
//
// # Sources
//
// The wording of objectives under constraints follows that of site reliability objectives ("99 %
// below 5 ms"), Beyer et al., "Site Reliability Engineering", 2016, chapter 4.
//
// # Limits
//
// One goal for a run, and no weights between several: what a second goal is worth is said by a
// bound on it.
package goal

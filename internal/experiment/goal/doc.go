// Package goal defines what a tune improves and what it may cost: one objective, and bounds on
// other quantities.
//
// # Model
//
//	objective = goal [ "where" bound { "and" bound } ]
//	goal      = "throughput" | "latency" | "packets"
//	bound     = term ( "<" | "<=" | ">" | ">=" ) number unit
//
// [Parse] parses an objective; its error is an [*Error] that points at the place. Contradictions
// are errors as well: two objectives, a bound on the wrong side, two bounds that no result can
// meet. [Objective.Unreachable] rejects what a measured path cannot give.
//
// A term has a good side, and a bound can only ask for that one: p99_rtt<5ms, throughput>1Gb/s.
// [Terms] lists all terms with units. Measured numbers are not exact, so < and <= mean the same.
//
// # Units
//
// Values are in SI base units: seconds, bits per second, ratios (80 % is 0.8), counts per second,
// counts per gigabyte (10⁹ bytes of payload).
//
// cpu is the share of the busiest single CPU of either host, because that CPU limits a flow while
// dozens of others idle; cpu_total is the share of all CPUs of the busier host. rtt is the mean
// round trip of the loaded flow itself, as its sender's TCP sees it; p50_rtt and p99_rtt are those
// of packets beside the load, or of the transactions if those are the load.
//
// # Sources
//
// The wording of objectives under constraints follows that of site reliability objectives ("99 %
// below 5 ms"), Beyer et al., "Site Reliability Engineering", 2016, chapter 4.
//
// # Limits
//
// One goal per run, and no weights between several: a bound expresses what a second goal is worth.
package goal

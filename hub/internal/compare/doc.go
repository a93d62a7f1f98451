// Package compare sets two intervals of a host's history against each other: what each metric was
// before and after, by how much it differs, for how sure, and which of all metrics moved at all.
//
// # Model
//
// Counters become rates, gauges averages, at equal steps; series of processors and queues are added
// up. Of each series a [Row] gives median and 99th percentile of both intervals, and the ratio of
// the means with its interval.
//
// Seconds that follow one another are alike, so they are not counted as so many samples. Each
// interval is cut into blocks of one length, at least 8 in the shorter interval, and block means
// are what is judged (the method of batch means). Blocks that are still alike make the judgement
// too sure; by how much follows from the correlation of one step with the next, and the error is
// widened by it. The interval of the ratio comes from the logarithms of both means, with Student's
// t. The percentile interval of a block bootstrap, tried in its place with the same blocks, holds
// the truth in 87 to 91 of 100 cases instead of 95.
//
// A comparison looks at a hundred metrics, so that five of them would differ at 95 % by chance. A
// row is therefore said to have moved by another rule: the blocks of both intervals are shuffled
// together 2000 times, for all metrics in the same order, and each time the largest rank sum of all
// metrics is kept. What moved stands out beyond the 95th percentile of those. So in 95 of 100
// comparisons of intervals that do not differ, nothing is said to have moved; that metrics depend
// on one another costs nothing. The shuffling begins with a fixed seed: the same history gives the
// same answer.
//
// # Units
//
// Those of the metrics; of a counter, per second.
//
// # Sources
//
// Batch means: Law & Carson, Operations Research 27 (1979). Largest statistic under permutation:
// Westfall & Young, "Resampling-Based Multiple Testing" (1993). Variance of the mean of a
// first-order autoregressive series: Priestley, "Spectral Analysis and Time Series" (1981), §5.3.2;
// the bias of its coefficient: Kendall, Biometrika 41 (1954). Student's quantiles: Hill,
// Communications of the ACM 13 (1970), algorithm 396.
//
// # Limits
//
// It says that two intervals differ, not why: another hour of the day differs too. Memory of
// traffic that is much longer than a block makes it too sure. Fewer than 16 values in an interval
// are not judged. A shift between processors or queues whose sum stays is not seen.
package compare

// Package compare compares two intervals of a host's history: the values of each metric before and
// after, their ratio with its confidence interval, and which metrics moved at all.
//
// # Model
//
// Counters become rates and gauges averages, at equal steps; series of CPUs and queues are summed.
// A [Row] has the median and the 99th percentile of a series in both intervals, and the ratio of
// the means with its interval.
//
// Consecutive seconds are correlated, so they are not independent samples. The method of batch
// means cuts each interval into blocks of one length, at least 8 in the shorter interval, and
// judges block means. Blocks that are still correlated make the judgement too confident; the
// correlation of one step with the next says by how much, and widens the error. The interval of the
// ratio comes from the logarithms of both means, with Student's t. The percentile interval of a
// block bootstrap with the same blocks holds the true ratio in 87 to 91 of 100 cases instead of 95.
//
// A comparison has a hundred metrics, of which five would differ at 95 % by chance. So another rule
// decides which rows moved. The blocks of both intervals are shuffled together 2000 times, for all
// metrics in the same order, and each shuffle yields the largest rank sum of all metrics. A row
// moved if it exceeds the 95th percentile of those. In 95 of 100 comparisons of equal intervals, no
// row moves, and dependence between metrics costs nothing. The shuffle has a fixed seed: the same
// history gives the same answer.
//
// # Units
//
// Those of the metrics; counters per second.
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
// The comparison shows that two intervals differ, not why: another hour of the day differs too.
// Correlation over much more than a block makes it too confident. It does not judge an interval
// with fewer than 16 values, and does not see a shift between CPUs or queues with the same sum.
package compare

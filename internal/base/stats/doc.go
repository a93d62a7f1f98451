// Package stats holds the statistics behind linerate's decisions: order statistics, exact rank
// intervals, group-sequential boundaries, steady-state detection and latency histograms. It is pure
// arithmetic and independent of networks.
//
// # Model
//
// A sample is a []float64 and is never modified. An [Interval] is an estimate with the ends between
// which the truth lies at a stated confidence; an end that the sample cannot determine is infinite.
// A [Boundary] determines after which numbers of pairs the data of an experiment may be examined,
// and how extreme they must be at each look so that all looks together keep the promised
// confidence. A [Warning] is data: it never stops a computation and must be shown. A [Histogram]
// holds latencies in bounded memory.
//
// No method here assumes a normal distribution. The signed-rank interval assumes only that, without
// an effect, a pair's difference is equally likely to be above or below the centre by the same
// amount. Randomising the order of the two arms ensures that.
//
// # Units
//
// Samples have the unit of the caller. Results of relative quantities are natural logarithms of
// ratios or plain ratios, as each function states. Histograms record nanoseconds and report
// seconds.
//
// # Sources
//
//   - signed ranks and Walsh averages: F. Wilcoxon 1945; J. W. Tukey 1949; Hollander, Wolfe &
//     Chicken, "Nonparametric Statistical Methods", 3rd edition, §3.1–3.3
//   - Hodges & Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963)
//   - quantiles: Hyndman & Fan, "Sample quantiles in statistical packages", Am. Stat. 50 (1996),
//     definition 7
//   - group-sequential spending: Lan & DeMets, Biometrika 70 (1983); repeated intervals: Jennison &
//     Turnbull, J. R. Statist. Soc. B 51 (1989)
//   - steady state: K. P. White, "An effective truncation heuristic for bias reduction in
//     simulation output", Simulation 69 (1997); MSER-5: White, Cobb & Spratt 2000
//   - drift: Theil 1950, Sen 1968, Mann 1945, Kendall 1975
//   - histogram: G. Tene's HdrHistogram, three significant digits
//
// # Limits
//
// Rank intervals take memory and time in the square of the sample size. Boundaries are exact up to
// 20 pairs and conservative beyond. A Histogram is not safe for concurrent use: give each goroutine
// its own and [Histogram.Merge] them.
package stats

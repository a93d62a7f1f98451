// Package peak keeps the highest rate of a counter in each minute, so that a burst of a second
// keeps its height in a graph of a week.
//
// # Model
//
// A graph draws the mean of each step, and a mean over minutes hides a burst. A [Keeper] takes the
// readings of a host. For each series of some counters it has the highest rate between two
// readings, and returns it at the end of each minute as a gauge: linerate_interface_drops_total has
// linerate_interface_drops_peak_per_second, with the same labels. The maximum of a gauge over any
// time is the highest rate in it. The history needs one sample a minute for it.
//
// # Units
//
// Those of the counter, per second. The sample of a minute has the time of its end.
//
// # Sources
//
// Readings of package sample, a second apart. Rates are over [sample.Reading.SinceBoot], so a late
// reading makes no peak.
//
// # Limits
//
// The history has no sample for a minute in which the counter did not grow. A burst shorter than
// the time between two readings counts with its mean over that time. The peaks of two series do not
// add up to the peak of their sum.
package peak

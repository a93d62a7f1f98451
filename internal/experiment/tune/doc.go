// Package tune is the experiment: it tries candidate changes one at a time, keeps only what is
// proven to help, confirms the kept set against the original and takes everything else back.
//
// # Model
//
// A [Prober] measures one segment; a [Host] turns knobs as trial changes; a [Candidate] is a knob
// on one [Side] with the levels to try. [Run] goes through these phases:
//
//	pilot         A against A: the noise of a pair, and whether the bench reports differences
//	              where there are none
//	levels        several levels of one knob: sequential halving, then the smallest level
//	              as good as the best
//	trial         the candidate (B) against the present set (A), decided at planned looks only
//	together      if nothing was kept, all unproven candidates at once: two equal limits in
//	              series hide each other
//	confirmation  the whole kept set (B) against the original (A), with fresh pairs
//	ablation      the kept set (B) against the kept set without one change (A), to drop what
//	              is not needed
//	soak          on request: the committed set against the original again, after some time in force
//
// It then commits, or undoes everything. An arm is a list of settings on top of the original. The
// two arms of a pair are measured one after the other, each with new connections, in an order that
// a coin decides for every pair. The result of a pair is ln(B/A). A candidate is kept only if the
// lower end of the interval of these values beats the largest of 1 %, Config.MinUsefulEffect and
// the noise floor of the pilot, and no guard-rail is proven worse than its bound. An unproven
// candidate is reverted.
//
// The coin per pair, instead of strict ABBA blocks, makes the sign of a useless knob's difference a
// fair coin under any noise: drift, autocorrelation, or a disturbance with the period of a block
// cannot become a gain. The boundary of package stats then bounds what one trial falsely keeps,
// (1−Confidence)/2. What stays has passed a second test with new data, alone in the confirmation or
// beside others in the ablation, so that many candidates do not add up to a false gain: with m of
// them, one stays falsely with at most m times the product of the two risks. Members of a set that
// was proven only as a whole share the risk (Bonferroni).
//
// Before any change, the pilot promises the gain that nine in ten such runs keep, confirm and
// commit (Pilot.ResolvableEffect), within the budget if there is one.
//
// The engine knows nothing about networks, only a prober and two hosts. Simulation can therefore
// measure its error rates with thousands of experiments in seconds (characteristics_test.go).
//
// # Units
//
// Effects in results are ratios of the objective: 1 is no change, 25.3 means ×25.3. Bounds and
// MinUsefulEffect are relative: 0.01 is 1 %.
//
// # Sources
//
// Paired and interleaved runs: Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM
// 2013. Randomisation as the basis of the test: R. A. Fisher, "The Design of Experiments", 1935.
// Sequential halving: Karnin, Koren & Somekh, ICML 2013. The simplest of those equivalent to the
// best: Breiman et al., "Classification and Regression Trees", 1984. The measured error rates of
// this code are in testdata/operating-characteristics.golden.
//
// # Limits
//
// Changes are tried one at a time on top of the kept ones. Knobs that help only together are found
// if nothing else was kept, or if Config.Refill proposes one again after a keep. One goroutine
// calls Run; Run calls hosts and prober one at a time.
package tune

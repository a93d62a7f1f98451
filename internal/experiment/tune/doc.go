// Package tune is the experiment: it tries candidate changes one at a time, keeps only what is
// proven to help, confirms the kept set against the original and takes everything else back.
//
// # Model
//
// A [Prober] measures one segment; a [Host] turns knobs as trial changes; a [Candidate] is a knob
// on one [Side] with the levels worth trying. [Run] goes through
//
//	pilot         A against A: the noise of a pair, what this bench can resolve, and whether it calls nothing something
//	levels        several levels of one knob: sequential halving, then the smallest level that is as good as the best
//	trial         the candidate (B) against the present (A), decided at planned looks only
//	together      when nothing was kept, all unproven candidates at once: two equal limits in series hide each other's remedy
//	confirmation  the whole kept set (B) against the original (A), with fresh pairs
//	ablation      the kept set (B) against the kept set without one change (A): what is not needed goes
//	soak          when asked for: the committed set against the original again, after a while in force
//
// and commits, or undoes everything. An arm is a list of settings on top of the original; the two
// arms of a pair are measured one after the other, each with new connections, in an order decided
// by a coin for every pair. The result of a pair is ln(B/A). A candidate is kept only when the
// lower end of the interval of these beats the largest of 1 %, Config.MinUsefulEffect and the noise
// floor of the pilot, and no guard-rail is proven worse than its bound. Not proven means reverted.
//
// The coin per pair, instead of strict ABBA blocks, makes the sign of a useless knob's difference a
// fair coin whatever the noise does: drift, autocorrelation, or a disturbance whose period is that
// of a block cannot become a gain. What one trial falsely keeps is then bounded by the boundary of
// package stats, (1−Confidence)/2. What stays has passed a second test with new data, alone in the
// confirmation or beside others in the ablation, so that many candidates do not add up to a false
// gain: m of them leave one behind with at most m times the product of the two risks. Members of a
// set that was only proven as a whole share the risk (Bonferroni).
//
// The pilot promises, before anything is touched, the gain that nine in ten such runs will keep,
// confirm and commit (Pilot.ResolvableEffect), within the budget where there is one.
//
// The engine knows nothing of networks, only of a prober and two hosts. Its error rates can
// therefore be measured by simulation, thousands of experiments in seconds, and are
// (characteristics_test.go).
//
// Effects in results are ratios of the objective: 1 no change, 25.3 means ×25.3. Bounds and
// MinUsefulEffect are relative: 0.01 is 1 %.
//
// # Sources
//
// Paired and interleaved runs: Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM
// 2013. Randomisation as the basis of the test: R. A. Fisher, "The Design of Experiments", 1935.
// Sequential halving: Karnin, Koren & Somekh, ICML 2013. The simplest of what cannot be told apart
// from the best: Breiman et al., "Classification and Regression Trees", 1984. The measured error
// rates of this very code are in testdata/operating-characteristics.golden.
//
// # Limits
//
// Changes are tried one by one on top of what is kept. Knobs that help only together are found when
// nothing else was kept, or when Config.Refill brings one back after a keep. Run is for one
// goroutine; hosts and prober are called one at a time.
package tune

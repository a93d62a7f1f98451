package equal

// KernelResult is what the kernel of this host did with both rulesets.
type KernelResult struct {
	Packets   int    // sent through each ruleset
	Counters  int    // compared
	Moved     int    // of them
	Different string // the first difference; empty if there is none
}

package journal

import "time"

// patienceSteps is in how many steps a bounded wait is counted.
const patienceSteps = 16

// awaitFor waits for an answer, or the end of its channel, at most for d of the time in which this
// process runs. A process that is paused (by SIGSTOP, by its control group, by the host of its
// machine) finds its timers elapsed when it continues, before the other side could do anything. So
// the wait is counted in steps, and a pause of any length is one of them.
func awaitFor[T any](answer <-chan T, d time.Duration) (got T, ok bool) {
	if d <= 0 {
		return awaitSteps(answer, nil, 0)
	}
	steps := time.NewTicker(max(d/patienceSteps, 1)) // it drops the ticks of a pause but for one
	defer steps.Stop()
	return awaitSteps(answer, steps.C, patienceSteps)
}

// awaitSteps is awaitFor with a clock of n steps. An answer that comes with the last step counts.
func awaitSteps[T any](answer <-chan T, steps <-chan time.Time, n int) (got T, ok bool) {
	for range n {
		select {
		case got = <-answer:
			return got, true
		case <-steps:
		}
	}
	select {
	case got = <-answer:
		return got, true
	default:
		return got, false
	}
}

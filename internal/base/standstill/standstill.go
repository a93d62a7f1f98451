package standstill

import "time"

// Watch begins to look at the clock at every tick. It calls look, unless that is nil, with the time
// since the look before. End, which is called once, looks for the last time, waits until look has
// returned, and returns the longest time between two looks.
func Watch(tick time.Duration, look func(took time.Duration)) (end func() (longest time.Duration)) {
	done, longest := make(chan struct{}), make(chan time.Duration)
	last := time.Now() // here, so that a pause before the goroutine begins counts
	go func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		var gap time.Duration
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			case <-ticker.C:
			}
			took := time.Since(last)
			last = last.Add(took)
			gap = max(gap, took)
			if look != nil {
				look(took)
			}
		}
		longest <- gap
	}()
	return func() time.Duration {
		close(done)
		return <-longest
	}
}

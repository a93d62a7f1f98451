package top

import "github.com/linerate/linerate/internal/host"

// MovedBetween exports moved for tests.
func MovedBetween(name string, before, after *host.Counters, was, is []host.CardInterrupts) Moved {
	return moved(name, &glance{before, was}, &glance{after, is})
}

//go:build !linux

package sys

import "time"

// Check is not supported.
func (p *Poller) Check() (int, error) { return 0, errRawSocket }

// Await is not supported.
func (p *Poller) Await(time.Duration) (bool, error) { return false, errRawSocket }

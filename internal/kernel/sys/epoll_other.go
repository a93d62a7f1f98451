//go:build !linux

package sys

import "time"

// Poller watches many descriptors for one thread.
type Poller struct{}

// NewPoller is not supported.
func NewPoller(int) (*Poller, error) { return nil, errRawSocket }

// Add is not supported.
func (p *Poller) Add(int, bool, int) error { return errRawSocket }

// Remove is not supported.
func (p *Poller) Remove(int) error { return errRawSocket }

// Wait is not supported.
func (p *Poller) Wait(time.Duration) (int, error) { return 0, errRawSocket }

// Ready returns 0.
func (p *Poller) Ready(int) int { return 0 }

// Close does nothing.
func (p *Poller) Close() {}

// SetBlocking is not supported.
func SetBlocking(int, bool) error { return errRawSocket }

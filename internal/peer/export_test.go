package peer

import "time"

// WithCancelGrace returns the options with another cancelGrace.
func (o ConnectOptions) WithCancelGrace(d time.Duration) ConnectOptions {
	o.cancelGrace = d
	return o
}

// WithConfirmWithin returns the options with another confirmWithin.
func (o ServerOptions) WithConfirmWithin(d time.Duration) ServerOptions {
	o.confirmWithin = d
	return o
}

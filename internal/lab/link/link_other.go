//go:build !linux

package link

// Link is an emulated link; there is none on this OS.
type Link struct{}

// Start answers ErrNotSupported.
func Start(string, string, Params, Params, Options) (*Link, error) { return nil, ErrNotSupported }

// Set answers ErrNotSupported.
func (*Link) Set(Params, Params) error { return ErrNotSupported }

// Counters gives zeros.
func (*Link) Counters() Counts { return Counts{} }

// Close does nothing.
func (*Link) Close() error { return nil }

//go:build !linux

package link

// Link is an emulated link. This operating system has none.
type Link struct{}

// Start returns ErrNotSupported.
func Start(string, string, Params, Params, Options) (*Link, error) { return nil, ErrNotSupported }

// Set returns ErrNotSupported.
func (*Link) Set(Params, Params) error { return ErrNotSupported }

// Counters returns zeros.
func (*Link) Counters() Counts { return Counts{} }

// Close does nothing.
func (*Link) Close() error { return nil }

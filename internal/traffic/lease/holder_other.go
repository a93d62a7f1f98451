//go:build !linux

package lease

// holder says nothing: the lease is within this process.
func holder(string) owner { return owner{} }

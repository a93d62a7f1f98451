//go:build !linux

package schedule

// held cannot be told without taking the lock; changes on trial are seen in the journal itself.
func held(string) bool { return false }

//go:build !linux

package sys

// Where is Linux only.
func Where(int) (FileAt, error) { return FileAt{}, &UnsupportedError{Feature: "statx"} }

// Resident is Linux only.
func Resident(int, int64) (int64, error) { return 0, &UnsupportedError{Feature: "cachestat"} }

// DropPages is Linux only.
func DropPages(int, int64, int64) error { return &UnsupportedError{Feature: "posix_fadvise"} }

// ListExtents is Linux only.
func ListExtents(int, int64) (Extents, error) { return Extents{}, nil }

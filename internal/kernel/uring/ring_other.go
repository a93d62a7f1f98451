//go:build !linux

package uring

import "github.com/linerate/linerate/internal/kernel/sys"

// Available reports that only Linux has io_uring.
func Available() error { return &sys.UnsupportedError{Feature: "io_uring"} }

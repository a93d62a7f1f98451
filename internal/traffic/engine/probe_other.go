//go:build !linux

package engine

import "github.com/linerate/linerate/internal/sys"

// probeMethods says that package net has neither of the methods that would have to be probed.
func probeMethods(SendMethod, ReceiveMethod) error {
	return &sys.UnsupportedError{Feature: "sending by reference and truncating receive"}
}

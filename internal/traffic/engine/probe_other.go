//go:build !linux

package engine

import "github.com/linerate/linerate/internal/kernel/sys"

// race is never run: there is one way to send.
func race(one, other SendMethod) (costOne, costOther float64) { return 0, 0 }

// probeMethods says that package net has neither of the methods that would have to be probed.
func probeMethods(SendMethod, ReceiveMethod) error {
	return &sys.UnsupportedError{Feature: "sending by reference and truncating receive"}
}

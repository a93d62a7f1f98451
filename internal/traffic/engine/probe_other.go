//go:build !linux

package engine

import "github.com/linerate/linerate/internal/kernel/sys"

// race is never called: this system has one way to send.
func race(one, other SendMethod) (costOne, costOther float64) { return 0, 0 }

// probeMethods reports that package net has neither of the methods to probe.
func probeMethods(SendMethod, ReceiveMethod) error {
	return &sys.UnsupportedError{Feature: "sending by reference and truncating receive"}
}

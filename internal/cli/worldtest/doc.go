// Package worldtest is for tests alone: whole commands in worlds of namespaces and in guests, and
// streams of documents from processes that end early.
//
// # Model
//
// A test runs a command with [github.com/linerate/linerate/internal/cli.Main], or starts its own
// binary as linerate. A validator that others wrote checks each document. It reads its own schemas
// at the start of every process, for 9 ms. Package cli starts its binary several hundred times in
// scripts, so these tests have a binary of their own.
//
// # Units
//
// None.
//
// # Sources
//
// Package reporttest for the validator.
//
// # Limits
//
// A path is real here, so a test checks only what does not depend on the speed of the machine.
package worldtest

// Package disks makes findings of what package storage measured.
//
// # Model
//
// [Findings] looks at one subject and its results. Each rule is a function that needs evidence of
// its own; the findings come in the order of [Codes]: first whether the figures are the disk's at
// all, then faults, then settings. A finding about a setting carries the knob with the levels to
// try.
//
// # Units
//
// Those of package storage: bytes, operations per second, seconds.
//
// # Sources
//
// Documentation/block/{bfq-iosched,deadline-iosched,queue-sysfs}.rst,
// Documentation/ABI/stable/sysfs-block.
//
// # Limits
//
// A setting is named only where the measurement itself shows that it matters. The wait of a program
// that is not the test is not visible here.
package disks

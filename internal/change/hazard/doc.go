// Package hazard knows, before a setting is written, what is known to go wrong with it on the cards
// of this host.
//
// # Model
//
// [Of] judges one setting against the [Port]s of a host, with the knowledge of package moderation.
// A [Hazard] that stops the card, or a value that the module does not take, refuses the write; the
// caller reports every other one. [Backend] asks before each write of the backend below it, so that
// whatever goes through the journal is asked alike: set, tune, and a serve that others may tune.
//
// Restoring an old value is never asked: journal restores by Write, and only CheckWrite asks.
//
// # Units
//
// Those of the knobs.
//
// # Sources
//
// Package moderation has the warnings of the drivers' documents. /sys/class/net/*/device names the
// driver and the PCI ids of a port; sysfs(5).
//
// # Limits
//
// Only Intel's e1000 and e1000e have known hazards. The module numbers its ports in the order in
// which it finds them, which is that of their PCI addresses unless a port was added later.
package hazard

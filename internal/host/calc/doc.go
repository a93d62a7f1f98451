// Package calc does the arithmetic of tuning: interrupt rates, TCP windows, bursts, buses and
// polling, each with its formula.
//
// # Model
//
// One type a question: [Moderation], [Window], [Burst], [Bus] and [Polling] hold what is given,
// zero where it is not, and their Result method returns what follows. A [Result] lists what was
// given and what follows, each [Quantity] with its unit and its formula. The formulas are those of
// packages moderation and bus, which the ceilings of inspect use too.
//
// # Units
//
// Every quantity names its own, see [Unit]: SI units without prefixes.
//
// # Sources
//
// Intel AP-450 for interrupts and packet timers; IEEE 802.3 for frames; RFC 7323 for windows; RFC
// 791 for fragments; polling(4); packages moderation and bus for the rest.
//
// # Limits
//
// Arithmetic only: it reads no host and knows no load but the one that is given.
package calc

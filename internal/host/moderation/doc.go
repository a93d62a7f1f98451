// Package moderation is the arithmetic of interrupt moderation: what a card's timers mean in
// interrupts, frames and microseconds, what the parameters of Intel's e1000 family do and which of
// them wins, and how to write the same setting today.
//
// # Model
//
// A card that interrupts for every frame leaves the processor no time for other work; a card that
// waits makes every frame wait with it. Everything here is one interval seen from several sides:
// the rate it allows ([InterruptsPerSecond]), the register that holds it ([ITR]), the frames that
// gather in it ([FramesPerInterrupt]), the time that a request and its answer lose to it
// ([IdleRoundTrip], [TransactionRate]), and the ring that must hold those frames meanwhile
// ([RingTime]). A [Throttle] is a value of InterruptThrottleRate. A [Card] has the facts that
// decide what that value does on it, in which [Form] it can be written, and its known [Hazards].
//
// The package reads and writes nothing: callers supply the numbers.
//
// # Units
//
// Rates are events per second and have types of their own; times are [time.Duration]; ITR is in
// units of 256 ns and [Ticks] in units of 1.024 µs, as the registers are. A throttle that is off
// has the interval 0 and the rate +Inf: no bound. A frame is named by its MTU, the payload of the
// Ethernet frame in bytes; on the wire it takes 38 more.
//
// # Sources
//
// Documentation/networking/device_drivers/ethernet/intel/{e1000,e1000e}.rst for the parameters,
// their ranges and warnings; drivers/net/ethernet/intel/{e1000,e1000e,igb} for what ethtool may ask
// for and how it is rounded; Intel's PCI/PCI-X Family of Gigabit Ethernet Controllers Software
// Developer's Manual, section 13.4.18, for the register; Intel's application note AP-450 for
// absolute and packet timers; IEEE 802.3 for frames on the wire.
//
// # Limits
//
// The model has one queue and one vector. It bounds the cost of moderation; the cost of the
// processor, the bus and the other end is the caller's base figure. The adaptive modes have only
// the range in which they move, because the driver chooses anew after every interrupt.
package moderation

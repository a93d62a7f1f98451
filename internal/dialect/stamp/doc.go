// Package stamp speaks the Simple Two-way Active Measurement Protocol of RFC 8762: it reflects the
// test packets of its senders and of TWAMP Light's, and sends its own to any reflector.
//
// # Model
//
// A sender writes a sequence number and the time T1 into a packet. The reflector ([Server]) sends
// it back with the time T2 at which it came, the time T3 at which it left again, the hop limit it
// came with, and a sequence number of its own. When the answer comes at T4 the sender ([Measure],
// [Run]) knows the round trip without the reflector's share, (T4 − T1) − (T3 − T2), in which no
// clock offset is left; the delay of each way, as right as both clocks; its variation, in which an
// offset cancels; and, if the reflector counts, which way lost what.
//
// A reflector that copies sequence numbers (stateless) looks like one that counts (stateful) until
// something is lost. So the sender leaves one number out before the measured part: only a reflector
// that counts is one short from then on. Which way lost packets is told only then.
//
// # Format
//
// All of it big-endian; zero fields are ignored when they come. Sender, 44 bytes, and reflector, 44
// bytes:
//
//	 0  4  sequence number, from 0      0  4  sequence number: counted, or a copy
//	 4  8  timestamp T1                 4  8  timestamp T3
//	12  2  error estimate              12  2  error estimate
//	14  2  session identifier (SSID)   14  2  its copy
//	16 28  zero                        16  8  timestamp T2
//	                                   24  4  sender's sequence number
//	                                   28  8  sender's T1
//	                                   36  2  sender's error estimate
//	                                   38  2  zero
//	                                   40  1  sender's TTL or hop limit, as it came
//	                                   41  3  zero
//
// Authenticated, 112 bytes each, with the first 16 bytes of HMAC-SHA-256 over bytes 0 to 95 at 96:
//
//	 0  4  sequence number              0  4  sequence number
//	 4 12  zero                         4 12  zero
//	16  8  timestamp T1                16  8  timestamp T3
//	24  2  error estimate              24  2  error estimate
//	26  2  SSID                        26  2  SSID
//	28 68  zero                        28  4  zero
//	96 16  HMAC                        32  8  timestamp T2
//	                                   40  8  zero
//	                                   48  4  sender's sequence number
//	                                   52 12  zero
//	                                   64  8  sender's T1
//	                                   72  2  sender's error estimate
//	                                   74  6  zero
//	                                   80  1  sender's TTL
//	                                   81 15  zero
//	                                   96 16  HMAC
//
// Behind that come TLVs: flags (0x80 not understood, 0x40 malformed, 0x20 integrity failed), type,
// length of the value, value. The reflector copies them and sets the flags; it understands extra
// padding (1) and HMAC (8).
//
// A timestamp is NTP's (seconds since 1900 and a fraction of 32 bits) or PTP's (seconds of TAI
// since 1970 and nanoseconds), told by a bit of the error estimate. The estimate also says whether
// the clock is synchronised, and its error, multiplier · 2^scale · 2^-32 s.
//
// TWAMP Light's packets (RFC 5357 appendix I) are the unauthenticated ones cut short: its sender's
// have 14 bytes at least, its reflector's 38, without the TTL, or 41.
//
// # Clocks and timestamps
//
// T2 and T4 are the kernel's (SO_TIMESTAMPNS), T1 and T3 are read just before the packet is handed
// over. The error estimate is what the kernel says of its clock (adjtimex: STA_UNSYNC and
// maxerror); a kernel that nobody tells that its clock is right says that it is not. Delays of one
// way are given only where both ends say that their clocks are synchronised.
//
// # Units
//
// Nanoseconds since 1970, UTC, inside; seconds in results. Bytes of UDP payload.
//
// # Sources
//
// RFC 8762 (STAMP), RFC 8972 (TLVs, SSID), RFC 4656 §4.1.2 (error estimate), RFC 8186 (PTP format),
// RFC 5357 and RFC 6038 (TWAMP Light, symmetrical size), RFC 5481 (delay variation), RFC 3550
// §6.4.1 (jitter), RFC 2104 (HMAC); adjtimex(2), socket(7), ip(7), ipv6(7).
//
// # Limits
//
// Nothing proves a sender's address, so an answer is never longer than the packet, but for sources
// that the caller trusts; packets too short to hold an answer are dropped from others, and so are
// those from ports that belong to other services. Nothing is sent to a source faster than
// [admission.Gate.Allow] says. Leap seconds are not smoothed. Where the clocks are not synchronised
// their drift adds to the variation of delay: 10 ppm are 100 µs in 10 s. Kernel timestamps and hop
// limits are Linux only; elsewhere times are read when the program runs, and the hop limit is 0.
package stamp

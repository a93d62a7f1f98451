// Package stamp implements the Simple Two-way Active Measurement Protocol of RFC 8762. It reflects
// the test packets of STAMP and TWAMP Light senders, and sends test packets to any reflector.
//
// # Model
//
// A sender writes a sequence number and the time T1 into a packet. The reflector ([Server]) returns
// it with the time T2 of its arrival, the time T3 of its departure, the hop limit it arrived with,
// and a sequence number of its own. When the answer arrives at T4, the sender ([Measure], [Run])
// knows the round trip without the reflector's share, (T4 − T1) − (T3 − T2), which contains no
// clock offset. It knows the delay of each direction, as accurate as both clocks, and its
// variation, in which an offset cancels. If the reflector counts, the sender also knows which
// direction lost packets.
//
// A reflector that copies sequence numbers (stateless) looks like one that counts (stateful) until
// a packet is lost. So the sender skips one number before the measured part: only the counter of a
// stateful reflector then differs by one. The result splits losses by direction only in that case.
//
// # Format
//
// All fields are big-endian; zero fields are ignored on arrival. Sender, 44 bytes, and reflector,
// 44 bytes:
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
//	                                   40  1  sender's TTL or hop limit, as it arrived
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
// TLVs follow: flags (0x80 not understood, 0x40 malformed, 0x20 integrity failed), type, length of
// the value, value. The reflector copies them and sets the flags; it understands extra padding (1)
// and HMAC (8).
//
// A timestamp is NTP's (seconds since 1900 and a fraction of 32 bits) or PTP's (seconds of TAI
// since 1970 and nanoseconds); a bit of the error estimate selects the format. The estimate also
// contains whether the clock is synchronised, and its error, multiplier · 2^scale · 2^-32 s.
//
// TWAMP Light's packets (RFC 5357 appendix I) are truncated unauthenticated ones: its sender's have
// at least 14 bytes, its reflector's 38, without the TTL, or 41.
//
// # Clocks and timestamps
//
// The kernel takes T2 and T4 (SO_TIMESTAMPNS). T1 and T3 are read just before the packet is handed
// to the kernel. The error estimate comes from the kernel (adjtimex: STA_UNSYNC and maxerror);
// without a daemon that synchronises the clock, the kernel reports it as unsynchronised. One-way
// delays are reported only if both ends report synchronised clocks.
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
// Nothing proves a sender's address, so an answer is never longer than its request, except for
// sources that the caller trusts. For all other sources, packets too short to hold an answer are
// dropped, and so are packets from ports of other services. [admission.Gate.Allow] bounds the rate
// of answers to a source. Leap seconds are not smoothed. Where the clocks are not synchronised,
// their drift adds to the variation of delay: 10 ppm are 100 µs in 10 s. Kernel timestamps and hop
// limits are Linux only; on other systems the program reads the time, and the hop limit is 0.
package stamp

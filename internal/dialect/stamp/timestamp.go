package stamp

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// ntpEpoch is 1970 in seconds of NTP's first era, which began in 1900 (RFC 5905 §6).
const ntpEpoch = 2208988800

// format is the encoding of a timestamp.
type format bool

const (
	ntpFormat format = false // the default of RFC 8762
	ptpFormat format = true  // Z bit of the error estimate
)

// putTimestamp writes nanoseconds since 1970, UTC, into the first 8 bytes of p. taiOffset is TAI
// minus UTC in seconds; PTP counts TAI.
func putTimestamp(p []byte, unixNanos int64, f format, taiOffset int64) {
	seconds, nanos := unixNanos/1e9, unixNanos%1e9
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	if f == ptpFormat {
		binary.BigEndian.PutUint32(p, uint32(seconds+taiOffset))
		binary.BigEndian.PutUint32(p[4:], uint32(nanos))
		return
	}
	// Rounded to nearest: a fraction is 0.23 ns, so reading a time back returns the same
	// nanosecond.
	fraction := (uint64(nanos)<<32 + 5e8) / 1e9
	binary.BigEndian.PutUint32(p, uint32(seconds+ntpEpoch))
	binary.BigEndian.PutUint32(p[4:], uint32(fraction))
}

// parseTimestamp reads nanoseconds since 1970, UTC. Both formats have 32 bits of seconds, which
// overflow every 136 years (NTP's in 2036); the result is the possible time nearest to now. ok is
// false for an invalid fraction.
func parseTimestamp(p []byte, f format, taiOffset int64, now int64) (unixNanos int64, ok bool) {
	seconds, low := int64(binary.BigEndian.Uint32(p)), uint64(binary.BigEndian.Uint32(p[4:]))
	var nanos int64
	if f == ptpFormat {
		if low >= 1e9 {
			return 0, false
		}
		seconds, nanos = seconds-taiOffset, int64(low)
	} else {
		seconds, nanos = seconds-ntpEpoch, int64((low*1e9+1<<31)>>32)
	}
	// The signed difference in 32 bits is the distance from now to the nearest time.
	reference := now / 1e9
	seconds = reference + int64(int32(uint32(seconds-reference)))
	return seconds*1e9 + nanos, true
}

// errorEstimate is what an end reports about its clock (RFC 4656 §4.1.2, RFC 8186 §2.3).
type errorEstimate struct {
	synchronised bool
	format       format
	scale        uint8 // 0 to 63
	multiplier   uint8 // never 0 on the wire
}

// estimate returns the smallest error estimate that covers an error.
func estimate(err time.Duration, synchronised bool, f format) errorEstimate {
	e := errorEstimate{synchronised: synchronised, format: f}
	// In units of 2^-32 s, rounded up. An hour of error is useless anyway, and the bound keeps the
	// product within 64 bits.
	err = min(max(err, 1), time.Hour)
	hi, lo := bits.Mul64(uint64(err), 1<<32)
	units, rest := bits.Div64(hi, lo, 1e9)
	if rest > 0 {
		units++
	}
	for units > 255 {
		units = (units + 1) / 2
		e.scale++
	}
	e.multiplier = uint8(max(units, 1))
	return e
}

// parseEstimate decodes an error estimate.
func parseEstimate(v uint16) errorEstimate {
	return errorEstimate{synchronised: v&0x8000 != 0, format: v&0x4000 != 0, scale: uint8(v >> 8 & 0x3f),
		multiplier: uint8(v)}
}

// bits returns the encoded estimate.
func (e errorEstimate) bits() uint16 {
	v := uint16(e.scale&0x3f)<<8 | uint16(e.multiplier)
	if e.synchronised {
		v |= 0x8000
	}
	if e.format == ptpFormat {
		v |= 0x4000
	}
	return v
}

// seconds returns the error that the estimate represents.
func (e errorEstimate) seconds() float64 {
	v := float64(e.multiplier) / (1 << 32)
	for range e.scale {
		v *= 2
	}
	return v
}

// trusted reports whether the end vouches for its clock. A multiplier of zero makes the estimate
// meaningless.
func (e errorEstimate) trusted() bool { return e.synchronised && e.multiplier != 0 }

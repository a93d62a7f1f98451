package traffic

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// Limits are what a far end grants to any client that may run tests at all. A zero field means its
// default.
//
// The defaults bound what one test can cost a host: ten minutes of a full link, two threads per
// stream when both directions run, and for rr with 1024 streams of 1 MiB messages each way 2 GiB of
// buffers.
type Limits struct {
	MaxDuration         time.Duration // warm-up and measured part together; default 10 min
	MaxStreams          int           // each way; default 1024
	MaxMessageBytes     int           // of a request, response or ping; default 1 MiB
	MinGap              time.Duration // between pings; default 1 ms
	MaxBytes            int64         // payload of each direction of one test; default 8 TiB, ten minutes at 100 Gb/s
	MaxBitsPerSecond    float64       // payload of each direction of one test; default none
	MaxPacketsPerSecond float64       // datagrams of each direction of one test; default none
}

// Filled returns l with its defaults in place.
func (l Limits) Filled() Limits {
	if l.MaxDuration == 0 {
		l.MaxDuration = 10 * time.Minute
	}
	if l.MaxStreams == 0 {
		l.MaxStreams = MaxStreams
	}
	if l.MaxMessageBytes == 0 {
		l.MaxMessageBytes = maxMessageBytes
	}
	if l.MinGap == 0 {
		l.MinGap = time.Millisecond
	}
	if l.MaxBytes == 0 {
		l.MaxBytes = 8 << 40
	}
	return l
}

// Refuse returns the reason, in one plain sentence, why a normalized Spec is over the limits; "":
// it is within them.
func (l Limits) Refuse(s Spec) string {
	if s.traits().composed {
		return composedText
	}
	l = l.Filled()
	switch d := max(s.WarmUp, 0) + s.Duration; {
	case d <= l.MaxDuration:
	case s.Bytes > 0:
		return fmt.Sprintf("an amount that may take %v takes longer than the %v this host allows: "+
			"ask for a shorter duration with it", d, l.MaxDuration)
	default:
		return fmt.Sprintf("a test of %v is longer than the %v this host allows", d, l.MaxDuration)
	}
	if s.Streams > l.MaxStreams {
		return fmt.Sprintf("%d streams are more than the %d this host allows", s.Streams, l.MaxStreams)
	}
	if n := max(s.RequestBytes, s.ResponseBytes); n > l.MaxMessageBytes {
		return fmt.Sprintf("messages of %d bytes are larger than the %d this host allows", n, l.MaxMessageBytes)
	}
	for _, gap := range []time.Duration{s.pingGap(), s.ProbeGap} {
		if gap != 0 && gap < l.MinGap {
			return fmt.Sprintf("a ping every %v is more frequent than every %v, the limit of this host", gap, l.MinGap)
		}
	}
	if s.Bytes > l.MaxBytes {
		return fmt.Sprintf("%v are more than the %v this host allows", unit.Bytes(s.Bytes), unit.Bytes(l.MaxBytes))
	}
	return l.refuseRate(s)
}

// pingGap returns the time between the packets of a ping; 0: Gap is a pause between requests, or
// nothing.
func (s Spec) pingGap() time.Duration {
	if s.Test == Ping {
		return s.Gap
	}
	return 0
}

// refuseRate is the part of Refuse about speed. A test without a rate would run as fast as it can,
// so the refusal asks for a rate.
func (l Limits) refuseRate(s Spec) string {
	if most := l.MaxBitsPerSecond; most > 0 && s.Bulk() {
		switch r := s.BitRate(); {
		case r == 0:
			return fmt.Sprintf("this host allows %v: ask for that rate or less", unit.BitRate(most))
		case r > most:
			return fmt.Sprintf("%v are more than the %v this host allows", unit.BitRate(r), unit.BitRate(most))
		}
	}
	if most := l.MaxPacketsPerSecond; most > 0 && s.traits().takes&packetRates != 0 {
		switch r := s.PacketRate(); {
		case r == 0:
			return fmt.Sprintf("this host allows %.6g packets per second: ask for a rate", most)
		case r > most:
			return fmt.Sprintf("%.6g packets per second are more than the %.6g this host allows", r, most)
		}
	}
	return ""
}

// BitRate returns the payload in bits per second that each direction asks for; 0: as fast as
// possible.
func (s Spec) BitRate() float64 {
	if s.RatePacketsPerSec > 0 {
		return s.RatePacketsPerSec * float64(s.PacketBytes) * 8
	}
	return s.RateBitsPerSec
}

// PacketRate returns the datagrams per second that each direction asks for; 0: as fast as possible.
func (s Spec) PacketRate() float64 {
	if s.RatePacketsPerSec == 0 && s.PacketBytes > 0 {
		return s.RateBitsPerSec / float64(s.PacketBytes*8)
	}
	return s.RatePacketsPerSec
}

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// ErrCorrupt reports payload that arrived different from what was sent: an offload, driver or
// middlebox on the path has lost, duplicated or changed bytes, and TCP did not notice.
var ErrCorrupt = errors.New("payload differs from what was sent")

const (
	// patternPeriod is the number of bytes after which the payload of a stream repeats: byte n of
	// every stream is byte n modulo patternPeriod of [Pattern]. The two ends need to agree on
	// nothing more. It is 17 pages, so that a loss or duplicate in the usual units (pages, 64 KiB
	// of a large segment) shifts the pattern; only a multiple of 17 pages of 4 KiB goes undetected.
	patternPeriod = 17 * 4096
	// A sample has sampleBytes, and one is due after every sampleEvery bytes: a third of a per cent
	// of the payload is copied, and every fault that shifts the stream is found within a
	// millisecond at 40 Gb/s.
	sampleBytes = 8 << 10
	sampleEvery = 2 << 20
)

// Pattern is payload that no link and no middlebox can compress, the same on every run
// (xorshift64).
func Pattern(n int) []byte {
	b := make([]byte, n)
	x := uint64(0x9e3779b97f4a7c15)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// ring is the payload of streams for all workers of this process, which only read it: every
// position of the period has one call of every size after it.
var ring = sync.OnceValue(func() []byte {
	one := Pattern(patternPeriod)
	return bytes.Repeat(one, 1+(maxCallBytes+patternPeriod-1)/patternPeriod)
})

// verifier follows the position of a receiver in the stream and compares samples of it.
type verifier struct {
	want  []byte // nil: nothing to compare with
	at    int64  // bytes received so far
	dueAt int64  // where the next sample starts
}

func newVerifier(foreign bool) verifier {
	if foreign {
		return verifier{dueAt: -1}
	}
	return verifier{want: ring()}
}

// due reports whether the next bytes should be copied and given to check.
func (v *verifier) due() bool { return v.want != nil && v.at >= v.dueAt }

// skip passes over n bytes that were not copied.
func (v *verifier) skip(n int) { v.at += int64(n) }

// check compares the start of p, the next bytes of the stream, with what was sent there, and
// returns how many bytes it has compared.
func (v *verifier) check(p []byte) (int, error) {
	from := int(v.at % patternPeriod)
	n := min(len(p), sampleBytes)
	if !bytes.Equal(p[:n], v.want[from:from+n]) {
		for i := range n {
			if p[i] != v.want[from+i] {
				return i, fmt.Errorf("%w: byte %d of the stream", ErrCorrupt, v.at+int64(i))
			}
		}
	}
	v.at += int64(len(p))
	v.dueAt = v.at + sampleEvery
	return n, nil
}

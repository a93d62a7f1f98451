package datagram

import "fmt"

// Batch is how datagrams go through system calls.
type Batch string

// The ways. Each falls back to the next where the kernel has it not; what was used is in
// [Sent.Batch] and [Received.Batch].
const (
	BatchAuto Batch = "" // the first that works here
	// several per message, which the kernel cuts or has merged (UDP_SEGMENT, UDP_GRO), several
	// messages per call
	BatchGSO    Batch = "gso"
	BatchMMsg   Batch = "mmsg"   // several per call (sendmmsg, recvmmsg)
	BatchSingle Batch = "single" // one per call
)

// Limits of a datagram's payload in bytes: the largest that IPv4 carries, which is 20 less than
// what IPv6 does.
const MaxBytes = 65507

// ParseBatch reads the name of a batch; "auto" is the empty one.
func ParseBatch(s string) (Batch, error) {
	switch b := Batch(s); b {
	case "auto":
		return BatchAuto, nil
	case BatchAuto, BatchGSO, BatchMMsg, BatchSingle:
		return b, nil
	}
	return "", fmt.Errorf("%w: batch %q is not one of auto, gso, mmsg, single", ErrBadOptions, s)
}

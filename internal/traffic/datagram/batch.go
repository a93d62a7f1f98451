package datagram

import "fmt"

// Batch is how datagrams go through system calls.
type Batch string

// The ways. Each falls back to the next where the kernel does not have it; [Sent.Batch] and
// [Received.Batch] show the one used.
const (
	BatchAuto Batch = "" // the first that works on this host
	// several per message, which the kernel splits or has merged (UDP_SEGMENT, UDP_GRO), several
	// messages per call
	BatchGSO    Batch = "gso"
	BatchMMsg   Batch = "mmsg"   // several per call (sendmmsg, recvmmsg)
	BatchSingle Batch = "single" // one per call
)

// Limits of a datagram's payload in bytes: the largest that IPv4 carries, 20 less than that of
// IPv6.
const MaxBytes = 65507

// ParseBatch reads the name of a batch; "auto" is the empty name.
func ParseBatch(s string) (Batch, error) {
	switch b := Batch(s); b {
	case "auto":
		return BatchAuto, nil
	case BatchAuto, BatchGSO, BatchMMsg, BatchSingle:
		return b, nil
	}
	return "", fmt.Errorf("%w: batch %q is not one of auto, gso, mmsg, single", ErrBadOptions, s)
}

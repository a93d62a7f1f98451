package record

import "time"

// DiskState is the state of the disk.
type DiskState string

// The states.
const (
	DiskOK DiskState = "ok"
	// less room than the reserve, or the system reported a full disk: readings stay in memory
	DiskFull    DiskState = "full"
	DiskFailing DiskState = "failing" // writes fail for another reason
)

// Status is the state of the store.
type Status struct {
	// the store repairs its log: queries get ErrLoading, readings stay in memory
	Loading          bool
	Oldest, Newest   time.Time // of all samples; zero: no samples
	Bytes            int64     // of the directory: blocks, log and head
	FreeBytes        int64     // of its file system, for users without privileges
	State            DiskState
	Since            time.Time     // of a state other than ok
	Cause            string        // one line, of a state other than ok
	KeptInMemory     time.Duration // time span of the readings that wait in memory for room
	Lost             uint64        // readings dropped from memory before there was room, since the start
	Series           int           // with a sample in the last minutes
	SamplesPerSecond float64       // over the last minute
	Retention        time.Duration
}

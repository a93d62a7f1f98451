package record

import "time"

// DiskState says whether the history can be written.
type DiskState string

// The states of the disk.
const (
	DiskOK DiskState = "ok"
	// less room than is kept in reserve, or the system said so: readings are kept in memory
	DiskFull    DiskState = "full"
	DiskFailing DiskState = "failing" // writing fails for another reason
)

// Status is what the store says of itself.
type Status struct {
	// the log is being repaired: queries are refused with ErrLoading, readings are kept in memory
	Loading          bool
	Oldest, Newest   time.Time // of all samples; zero: there are none
	Bytes            int64     // of the directory: blocks, log and head
	FreeBytes        int64     // of its file system, for users without privileges
	State            DiskState
	Since            time.Time     // of a state that is not ok
	Cause            string        // one line, of a state that is not ok
	KeptInMemory     time.Duration // how much time the readings span that wait in memory for room
	Lost             uint64        // readings that fell out of memory before there was room, since the start
	Series           int           // that had a sample in the last minutes
	SamplesPerSecond float64       // over the last minute
	Retention        time.Duration
}

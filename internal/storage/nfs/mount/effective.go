package mount

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// effective reads what a mount has from its counters.
func effective(st procfs.NFSMount) Effective {
	e := Effective{Connections: max(1, len(st.Transports))}
	for _, o := range st.Options {
		name, value, _ := strings.Cut(o, "=")
		switch name {
		case "vers":
			e.Version = value
		case "proto":
			e.Protocol = value
		case "rsize":
			e.ReadSize, _ = strconv.ParseInt(value, 10, 64)
		case "wsize":
			e.WriteSize, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return e
}

// Sample is one segment.
type Sample struct {
	Spec      Spec
	Effective Effective
	Read      Moved
	Write     Moved
	WireRead  uint64 // bytes of READ replies
	// Of calls: requests sent, sent again, and failed for lack of an answer in time.
	Requests, Resent, Timeouts uint64
	TCPRetransmits             uint64 // segments that this host sent again, to anybody
	OutOfOrder                 uint64 // segments that came after a gap, from anybody
	Drops                      []drops.Drop
	Waits                      string // where the calls waited
	ServerCache                ServerCache
	MountSeconds               float64
}

// Moved is what one phase moved.
type Moved struct {
	Bytes   int64
	Seconds float64
}

// Rate returns bytes per second; 0 if nothing was moved.
func (m Moved) Rate() float64 {
	if m.Seconds <= 0 {
		return 0
	}
	return float64(m.Bytes) / m.Seconds
}

// ServerCache says what the server's memory could hold of the bytes that were read.
type ServerCache string

// The states of the server's cache, as far as this run can know them.
const (
	ServerCold   ServerCache = "cold"   // a region that this run has not read before
	ServerReused ServerCache = "reused" // read before in this run
	ServerWarm   ServerCache = "warm"   // a file that this run has just written
)

// Plan says how a bench measures.
type Plan struct {
	Base     Spec
	File     string        // an existing file below the export to read; empty: one of our own
	Read     bool          // measure reads
	Write    bool          // measure writes
	Direct   bool          // one call at a time, past the client's cache (O_DIRECT)
	Size     int64         // most bytes of a file of our own
	Segment  time.Duration // measured part of a phase
	WarmUp   time.Duration // left out before it
	Patience time.Duration // how long a server may be silent
	Regions  int           // parts of File, a segment each
}

// Facts are what a bench knows before it measures.
type Facts struct {
	Ends        Ends
	Default     Effective // of a mount with the base options
	File        string
	FileBytes   int64
	RegionBytes int64
	WriteBytes  int64 // of one segment
	Removed     []string
	Left        []string // files of linerate on other hosts
}

// ErrNoNFS reports a kernel without an NFS client.
var ErrNoNFS = errors.New("this kernel has no NFS client")

// OtherVersion reports whether an error of a mount says that server or kernel lack the version.
func OtherVersion(err error) bool {
	return errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, syscall.EINVAL)
}

// lost reports whether an error says that the server cannot be asked any more.
func lost(err error) bool {
	for _, sign := range []error{ErrSilent, syscall.ECONNREFUSED, syscall.ETIMEDOUT, syscall.EIO, syscall.EHOSTUNREACH} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

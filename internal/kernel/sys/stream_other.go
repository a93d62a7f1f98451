//go:build !linux

package sys

import (
	"net/netip"
	"time"
)

// ReadNow is not supported.
func ReadNow(int, []byte) (int, error) { return 0, errRawSocket }

// WriteNow is not supported.
func WriteNow(int, []byte) (int, error) { return 0, errRawSocket }

// ReadTruncated is not supported.
func ReadTruncated(int, int) (int, error) { return 0, errRawSocket }

// CreateMemoryFile is not supported.
func CreateMemoryFile(string, []byte) (int, error) { return -1, errRawSocket }

// SendFile is not supported.
func SendFile(int, int, int64, int) (int, error) { return 0, errRawSocket }

// OpenPipe is not supported.
func OpenPipe(int) (read, write int, err error) { return -1, -1, errRawSocket }

// SpliceMemory is not supported.
func SpliceMemory(int, []byte) (int, error) { return 0, errRawSocket }

// Splice is not supported.
func Splice(int, int, int) (int, error) { return 0, errRawSocket }

// ShutdownRead is not supported.
func ShutdownRead(int) error { return errRawSocket }

// ShutdownWrite is not supported.
func ShutdownWrite(int) error { return errRawSocket }

// SetMaxSegmentBytes is not supported.
func SetMaxSegmentBytes(int, int) error { return errRawSocket }

// SetMaxPacingRate is not supported.
func SetMaxPacingRate(int, float64) error { return errRawSocket }

// SetReuseAddress is not supported.
func SetReuseAddress(int) error { return errRawSocket }

// BindLocal is not supported.
func BindLocal(int, netip.Addr, int) error { return errRawSocket }

// SetUnsentLowWater is not supported.
func SetUnsentLowWater(int, int) error { return errRawSocket }

// SetReceiveLowWater is not supported.
func SetReceiveLowWater(int, int) error { return errRawSocket }

// SetDeferAccept is not supported.
func SetDeferAccept(int, time.Duration) error { return errRawSocket }

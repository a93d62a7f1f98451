package sys

import (
	"errors"
	"fmt"
)

// ErrNotSupported reports that this kernel, system or socket lacks a feature. It is a fact, not a
// failure.
var ErrNotSupported = errors.New("not supported by this system")

// UnsupportedError is an [ErrNotSupported] that names the missing feature and the version that
// introduced it.
type UnsupportedError struct {
	Feature string // "cpu pinning", "tcp_info"
	Since   string // "Linux 3.0"; empty: no version of this system has it
}

// Error returns "feature: not supported by this system (since …)".
func (e *UnsupportedError) Error() string {
	if e.Since == "" {
		return fmt.Sprintf("%s: %v", e.Feature, ErrNotSupported)
	}
	return fmt.Sprintf("%s: %v (needs %s)", e.Feature, ErrNotSupported, e.Since)
}

// Is makes every UnsupportedError an ErrNotSupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrNotSupported }

// Support is the result of a probe.
type Support int

// The three results. Unknown does not mean unsupported: the probe could not determine it, usually
// for lack of a privilege.
const (
	Unknown Support = iota
	Supported
	Unsupported
)

// String returns "supported", "unsupported" or "unknown".
func (s Support) String() string {
	switch s {
	case Supported:
		return "supported"
	case Unsupported:
		return "unsupported"
	}
	return "unknown"
}

// SupportOf converts the error of a probe to its result.
func SupportOf(err error) Support {
	switch {
	case err == nil:
		return Supported
	case errors.Is(err, ErrNotSupported):
		return Unsupported
	}
	return Unknown
}

// Probe is one capability that the engine can use.
type Probe struct {
	Feature string       // its description
	Since   string       // the Linux release that introduced it
	Check   func() error // nil: yes; ErrNotSupported: no; any other error: unknown
}

// Probes returns all capabilities that this package can check, quickest first. A check changes
// nothing on the host.
func Probes() []Probe {
	return []Probe{
		{"cpu pinning", "Linux 2.5.8", func() error { _, err := AllowedCPUs(); return err }},
		{"clock that counts suspend", "Linux 2.6.39", func() error { _, err := boottime(); return err }},
		{"boot id", "Linux 2.4", func() error { _, err := BootID(); return err }},
		{"tcp_info", "Linux 2.4", probeTCPInfo},
		{"tcp_info chronographs", "Linux 4.10", probeChronographs},
		{"icmp echo", "Linux 2.0", probeEcho},
	}
}

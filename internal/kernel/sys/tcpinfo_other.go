//go:build !linux

package sys

// ReadTCPInfo returns an error: this system has no struct tcp_info.
func ReadTCPInfo(int) (TCPInfo, error) { return TCPInfo{}, &UnsupportedError{Feature: "tcp_info"} }

func probeTCPInfo() error { return &UnsupportedError{Feature: "tcp_info"} }

func probeChronographs() error { return &UnsupportedError{Feature: "tcp_info chronographs"} }

//go:build !linux

package sys

// ReadTCPInfo says that this system shows no struct tcp_info of Linux.
func ReadTCPInfo(int) (TCPInfo, error) { return TCPInfo{}, &UnsupportedError{Feature: "tcp_info"} }

func probeTCPInfo() error { return &UnsupportedError{Feature: "tcp_info"} }

func probeChronographs() error { return &UnsupportedError{Feature: "tcp_info chronographs"} }

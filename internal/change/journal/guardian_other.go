//go:build !linux

package journal

import "errors"

func processStarted(int) (uint64, error) { return 0, errors.ErrUnsupported }

func processWork(int) uint64 { return 0 }

func pidNamespace() string { return "" }

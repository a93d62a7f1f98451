//go:build !linux

package journal

import "errors"

func processStarted(int) (uint64, error) { return 0, errors.ErrUnsupported }

func pidNamespace() string { return "" }

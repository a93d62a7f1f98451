//go:build !linux

package wire

import "errors"

// canSleep is false: on other systems the reader blocks in TLS, with the larger stack.
const canSleep = false

func (s *sleeper) readNow([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (s *sleeper) sleep() {}

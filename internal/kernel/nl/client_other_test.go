//go:build !linux

package nl

import (
	"errors"
	"testing"
)

func TestDialSaysNo(t *testing.T) {
	if _, err := Dial(); !errors.Is(err, ErrNotSupported) {
		t.Errorf("dial: %v; want ErrNotSupported", err)
	}
}

//go:build !linux

package live_test

import (
	"errors"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

func TestLiveSaysNo(t *testing.T) {
	b := live.New()
	if _, err := b.Read(t.Context(), "link:net0/mtu"); !errors.Is(err, knob.ErrNotSupported) {
		t.Errorf("read: %v", err)
	}
	if err := b.Write(t.Context(), "link:net0/mtu", "1500"); !errors.Is(err, knob.ErrNotSupported) {
		t.Errorf("write: %v", err)
	}
}

//go:build !linux

package knob_test

import (
	"errors"
	"testing"

	"github.com/linerate/linerate/internal/knob"
)

func TestLiveSaysNo(t *testing.T) {
	b := knob.NewLive()
	if _, err := b.Read(t.Context(), "link:net0/mtu"); !errors.Is(err, knob.ErrNotSupported) {
		t.Errorf("read: %v", err)
	}
	if err := b.Write(t.Context(), "link:net0/mtu", "1500"); !errors.Is(err, knob.ErrNotSupported) {
		t.Errorf("write: %v", err)
	}
	if p := knob.Here(); p.Known {
		t.Errorf("place: %+v", p)
	}
}

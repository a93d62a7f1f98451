package text

import (
	"testing"

	"github.com/linerate/linerate/internal/host"
)

// A card of r8169 at 100 Mb/s whose other end has one gigabit (ublue-os/bazzite, issue 5094): this
// link could not have 2.5.
func TestFasterModeOfBothEnds(t *testing.T) {
	i := host.Interface{Carrier: true, SpeedBitsPerSec: 100e6, Card: &host.Card{Modes: &host.LinkModes{
		Supported: []string{"10baseT/Full", "100baseT/Full", "1000baseT/Full", "2500baseT/Full"},
	}}}
	for want, partner := range map[string][]string{
		"2500baseT/Full": nil,
		"1000baseT/Full": {"10baseT/Full", "100baseT/Full", "1000baseT/Full"},
		"":               {"10baseT/Full", "100baseT/Full"},
	} {
		i.Card.Modes.Partner = partner
		if mode, ok := fasterMode(i); mode != want || ok != (want != "") {
			t.Errorf("other end %v: %q %v, want %q", partner, mode, ok, want)
		}
	}
}

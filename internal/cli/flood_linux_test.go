package cli_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// TestFloodDrownsTheChannel floods a path that carries one datagram in two hundred, for longer than
// linerate otherwise waits for a silent peer. The control channel shares that path, and none of its
// messages get through during the flood.
func TestFloodDrownsTheChannel(t *testing.T) {
	t.Parallel()
	k := newKillWorld(t, true)
	narrow := link.Params{RateBitsPerSec: 100e3, QueueBytes: 2048, DelaySeconds: 0.005}
	if err := k.SetLink(t.Context(), scenario.Link{ToFar: narrow}); err != nil {
		t.Fatal(err)
	}
	measure := k.command(t.Context(), k.Near(), "measure", k.Far().Address,
		"--test", "udp", "--packet-rate", "20k", "--length", "64", "--duration", "12s", "--warm-up", "0s")
	var said bytes.Buffer
	measure.Stdout, measure.Stderr = &said, &said
	var exit *lab.ExitError
	if err := measure.Run(); errors.As(err, &exit) || err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
}

package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/host"
)

// TestNetnsCounters: nstat(8) in a namespace without other senders lies between two of our
// readings; the shaper keeps sending meanwhile.
func TestNetnsCounters(t *testing.T) {
	needTools(t, "ip", "tc", "nstat")
	var before, after *host.Counters
	var theirs struct{ Kernel map[string]uint64 }
	inNamespace(t, 0, func() error {
		if err := stage(); err != nil {
			return err
		}
		var err error
		if before, err = (host.Root{}).Counters(); err != nil {
			return err
		}
		out, err := otherSays("nstat", "-aszj")
		if err != nil {
			return err
		}
		if err := json.Unmarshal(out, &theirs); err != nil {
			return err
		}
		after, err = host.Root{}.Counters()
		return err
	})
	compared := 0
	for name, least := range before.Values {
		group, counter, _ := strings.Cut(name, ".")
		n, ok := theirs.Kernel[group+counter]
		if !ok {
			continue
		}
		compared++
		if most := after.Values[name]; n < least || n > most {
			t.Errorf("%s: %d there, from %d to %d here", name, n, least, most)
		}
	}
	if compared < 150 {
		t.Errorf("only %d counters were compared with those of nstat", compared)
	}
}

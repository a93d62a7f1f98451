package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/host"
)

// TestNetnsCounters: what nstat(8) says of a namespace in which nobody else sends.
func TestNetnsCounters(t *testing.T) {
	needTools(t, "ip", "tc", "nstat")
	var ours *host.Counters
	var theirs struct{ Kernel map[string]uint64 }
	inNamespace(t, 0, func() error {
		if err := stage(); err != nil {
			return err
		}
		var err error
		if ours, err = (host.Root{}).Counters(); err != nil {
			return err
		}
		out, err := otherSays("nstat", "-aszj")
		if err != nil {
			return err
		}
		return json.Unmarshal(out, &theirs)
	})
	compared := 0
	for name, n := range ours.Values {
		group, counter, _ := strings.Cut(name, ".")
		v, ok := theirs.Kernel[group+counter]
		// What IPv6 does by itself in a new namespace, looking for neighbours and groups, goes on meanwhile.
		if !ok || strings.HasSuffix(group, "6") || group == "IpExt" {
			continue
		}
		compared++
		if v != n {
			t.Errorf("%s: %d here, %d there", name, n, v)
		}
	}
	if compared < 150 {
		t.Errorf("only %d counters were compared with those of nstat", compared)
	}
}

package host_test

import (
	"encoding/json"
	"os"
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

// TestTables: what lnstat(8) says of the tables with a line for each CPU. The whole machine uses them, so that it is asked before and after.
func TestTables(t *testing.T) {
	needTools(t, "lnstat")
	// It ends with status 1 whenever it was told how often to look, and has said all the same what it should.
	ask := func(file string) map[string]uint64 {
		out, err := otherSays("lnstat", "-j", "-s", "0", "-c", "1", "-f", file)
		var table map[string]uint64
		if jsonErr := json.Unmarshal(out, &table); jsonErr != nil {
			t.Errorf("lnstat says %s: %v, %v", out, jsonErr, err)
		}
		return table
	}
	for group, file := range map[string]string{"conntrack": "nf_conntrack", "neigh.ipv4": "arp_cache", "neigh.ipv6": "ndisc_cache"} {
		// The neighbours are told in the first namespace alone, connections where the kernel follows them.
		if _, err := os.Stat("/proc/net/stat/" + file); err != nil {
			continue
		}
		before := ask(file)
		ours, err := host.Root{}.Counters()
		if err != nil {
			t.Fatal(err)
		}
		after := ask(file)
		if len(before) < 10 {
			t.Errorf("%s: only %v was compared", group, before)
		}
		for column, least := range before {
			n, ok := ours.Values[group+"."+column]
			if !ok || column != "entries" && (n < least || n > after[column]) {
				t.Errorf("%s of %s: %d here (%v), from %d to %d there", column, group, n, ok, least, after[column])
			}
		}
	}
}

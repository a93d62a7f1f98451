//go:build soak

package worldtest_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/resolver/world"
)

// TestSoundResolvers tunes every program twenty times with all its options.
func TestSoundResolvers(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers, testenv.Long, testenv.Soak)
	threads := "num-threads: " + strconv.Itoa(runtime.NumCPU()) // Unbound has one by default
	for range 20 {
		tuneSound(t, world.BIND, "--name-count", "500")
		tuneSound(t, world.Unbound, "--name-count", "500", "--plant", threads)
		tuneSound(t, world.Knot, "--name-count", "500")
	}
}

// TestKnotFaults plants three faults of Knot Resolver, and expects each to be mended by its own
// option alone.
func TestKnotFaults(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers, testenv.Long, testenv.Soak)
	for option, plant := range map[string][]string{
		"log_level":     {"--plant", "log_level('debug')", "--name-count", "500"},
		"cache.size":    {"--plant", "cache.size = 100 * kB", "--name-count", "1000"},
		"cache.max_ttl": {"--plant", "cache.min_ttl(0)", "--plant", "cache.max_ttl(1)", "--name-count", "1000"},
	} {
		kept := tuneWorld(t, world.Knot, plant...).Kept
		if len(kept) != 1 || kept[0].Knob.Attribute() != option {
			t.Errorf("%q is mended by %+v, want %s alone", plant, kept, option)
		}
	}
}

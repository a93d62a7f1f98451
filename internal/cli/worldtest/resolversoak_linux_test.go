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

package sockperf

import (
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }

// startServer serves on loopback until the test ends, and returns the server and a function that
// ends it early.
func startServer(t testing.TB, o ServerOptions) (s *Server, stop func()) {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{PacketsPerSecond: 1e6})
	}
	s, err := Listen(t.Context(), o)
	if err != nil && strings.HasPrefix(o.Address, "[::1]") {
		testenv.Missing(t, testenv.Network, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, traffictest.Serve(t, s)
}

// sockperf runs the program to its end and returns its output without colours. Any goroutine may
// call it.
func sockperf(t *testing.T, args ...string) string {
	out, err := traffictest.Output(t, 2*time.Minute, "sockperf", args...)
	if err != nil {
		t.Errorf("sockperf %v: %v\n%s", args, err, out)
	}
	return strings.NewReplacer("\x1b[2;35m", "", "\x1b[0m", "").Replace(out)
}

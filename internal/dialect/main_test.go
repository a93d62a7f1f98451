package dialect

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }

// serve runs servers of dialects for the length of a test.
func serve(t *testing.T, accept []Acceptance, limits admission.Limits) (*Servers, *traffictest.Log) {
	t.Helper()
	said := new(traffictest.Log)
	s, err := Listen(t.Context(), accept, Options{Host: "127.0.0.1", Gate: admission.New(limits), Log: said.Add})
	if err != nil {
		t.Fatal(err)
	}
	traffictest.Serve(t, s)
	return s, said
}

// freePort returns a port on which no process listens now, with TCP or UDP. No other test of this
// package gets the three ports after it.
func freePort(t *testing.T) int {
	t.Helper()
	return testenv.FreePorts(t, 4)
}

// start starts a server program for the length of a test and waits until it listens. Its output is
// complete when it has ended.
func start(t *testing.T, port int, name string, args ...string) *traffictest.Process {
	t.Helper()
	p := traffictest.Start(t, time.Minute, name, args...)
	testenv.AwaitListener(t, port)
	return p
}

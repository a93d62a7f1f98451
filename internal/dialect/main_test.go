package dialect

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }

// serve answers dialects for the length of a test.
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

// freePort is a port that nobody listens on, with TCP or UDP, at this moment. The three after it
// are nobody else's in this test.
func freePort(t *testing.T) int {
	t.Helper()
	return traffictest.FreePorts(t, 4)
}

// start starts a server program for the length of a test and waits until its port is taken. The
// output can be read when it has ended.
func start(t *testing.T, port int, name string, args ...string) *traffictest.Process {
	t.Helper()
	p := traffictest.Start(t, time.Minute, name, args...)
	traffictest.AwaitListener(t, port)
	return p
}

package nuttcp

import (
	"testing"

	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }

// serve runs a server for the length of a test; change may adjust it.
func serve(t *testing.T, limits admission.Limits, change func(*Server)) (*Server, *traffictest.Log) {
	t.Helper()
	said := new(traffictest.Log)
	s, err := Listen(t.Context(), ServerOptions{Address: "127.0.0.1:0", Gate: admission.New(limits), Log: said.Add})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	traffictest.Serve(t, s)
	return s, said
}

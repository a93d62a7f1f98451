package route

import (
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// world is a new network namespace with its clients.
type world struct {
	*nl.Client
	routes Client
}

// inNetNS runs f in a new world.
func inNetNS(t *testing.T, f func(c world)) {
	t.Helper()
	nltest.InNetNS(t, func() {
		c, err := nl.Dial()
		nltest.Must(t, err)
		defer func() { _ = c.Close() }()
		f(world{c, New(c)})
	})
}

package ethtool

import (
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// room is a second name, as a struct cannot embed two types that are both called Client.
type room = Client

// world is a fresh network namespace.
type world struct {
	*nl.Client
	room
}

// inNetNS runs f in one.
func inNetNS(t *testing.T, f func(c world)) {
	t.Helper()
	nltest.InNetNS(t, func() {
		c, err := nl.Dial()
		nltest.Must(t, err)
		defer func() { _ = c.Close() }()
		f(world{c, New(c)})
	})
}

package ethtool

import (
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// room is a second name: a struct cannot embed two types named Client.
type room = Client

// world is a new network namespace with its clients.
type world struct {
	*nl.Client
	room
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

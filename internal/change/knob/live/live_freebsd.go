package live

import (
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/native"
	"github.com/linerate/linerate/internal/kernel/mib"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// Host reads and writes the running system.
type Host = native.Host

// New returns the backend of the running system.
func New() *Host { return native.FreeBSD(knob.Catalogue(), mib.Kernel{}, tool.System{}, durable.OS()) }

// Here returns where this process stands: in a jail or on its host, which alone has the
// settings of the whole system.
func Here() knob.Place {
	n, err := mib.Kernel{}.Get("security.jail.jailed")
	return knob.Place{Known: err == nil, InitialNetNS: err == nil && n.Value == "0"}
}

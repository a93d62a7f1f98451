package live

import (
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/native"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// Host reads and writes the running system.
type Host = native.Host

// New returns the backend of the running system.
func New() *Host { return native.Solaris(knob.Catalogue(), tool.System{}, durable.OS()) }

// Here returns where this process stands; that is not known.
func Here() knob.Place { return knob.Place{} }

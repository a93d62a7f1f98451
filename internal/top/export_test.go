package top

import (
	tea "charm.land/bubbletea/v2"

	"github.com/linerate/linerate/internal/host"
)

// PresentSize exports presentSize for tests.
func PresentSize(t Terminal) func(tea.Model, tea.Msg) tea.Msg { return presentSize(t) }

// MovedBetween exports moved for tests.
func MovedBetween(name string, before, after *host.Counters, was, is []host.CardInterrupts) Moved {
	return moved(name, &glance{before, was}, &glance{after, is})
}

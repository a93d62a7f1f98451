//go:build !linux

package route

import (
	"net/netip"

	"github.com/linerate/linerate/internal/kernel/nl"
)

func (kernel) list() ([]Route, error)                     { return nil, nl.ErrNotSupported }
func (kernel) to(string) (Route, error)                   { return Route{}, nl.ErrNotSupported }
func (kernel) neighbourTables() ([]NeighbourTable, error) { return nil, nl.ErrNotSupported }
func (kernel) tcpMetrics() ([]netip.Addr, error)          { return nil, nl.ErrNotSupported }
func (kernel) forgetTCPMetrics(netip.Addr) error          { return nl.ErrNotSupported }
func (kernel) replace(Route) error                        { return nl.ErrNotSupported }
func (kernel) setMetric(string, Metric, int) error        { return nl.ErrNotSupported }
func (kernel) add(Route) error                            { return nl.ErrNotSupported }
func (kernel) get(string) (Route, error)                  { return Route{}, nl.ErrNotSupported }
func (kernel) setCongestion(string, string) error         { return nl.ErrNotSupported }

package dialect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/dialect/iperf2"
	"github.com/linerate/linerate/internal/dialect/iperf3"
	"github.com/linerate/linerate/internal/dialect/nuttcp"
	"github.com/linerate/linerate/internal/dialect/sockperf"
	"github.com/linerate/linerate/internal/dialect/stamp"
	"github.com/linerate/linerate/internal/dialect/ttcp"
	"github.com/linerate/linerate/internal/traffic"
)

// known is one dialect.
type known struct {
	name  string
	port  uint16
	suite []Measurement // what to measure when the user names no test
	run   runner

	// Exactly one of the two is set: listen opens a port of the dialect's own, join adds its server
	// to a port that several dialects share.
	listen func(ctx context.Context, at string, b *builder) (server, error)
	join   func(h *hub)
}

// Measurement is one test of a dialect's suite.
type Measurement struct {
	Test      traffic.Test
	Direction traffic.Direction
}

var (
	up        = []Measurement{{traffic.Stream, traffic.Up}}
	upAndDown = []Measurement{{traffic.Stream, traffic.Up}, {traffic.Stream, traffic.Down}}
	roundTrip = []Measurement{{traffic.Ping, traffic.Up}}
)

// dialects is the table of all dialects, in the order in which help texts list them.
var dialects = []known{
	{name: "iperf3", port: iperf3.DefaultPort, suite: upAndDown, run: runIperf3, listen: listenIperf3},
	{name: "iperf2", port: iperf2.DefaultPort, suite: up, run: runIperf2, join: joinIperf2},
	{name: "ttcp", port: ttcp.DefaultPort, suite: up, run: runTTCP, join: joinTTCP},
	{name: "nuttcp", port: nuttcp.DefaultPort, suite: upAndDown, run: runNuttcp, listen: listenNuttcp},
	{name: "sockperf", port: sockperf.DefaultPort, suite: roundTrip, run: runSockperf, listen: listenSockperf},
	{name: "stamp", port: stamp.DefaultPort, suite: roundTrip, run: runSTAMP, listen: listenSTAMP},
}

// Suite returns what to measure in a dialect when the user names no test; nil for an unknown name.
func Suite(name string) []Measurement {
	d, _ := lookup(name)
	return slices.Clone(d.suite)
}

// Names returns the names of all dialects.
func Names() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.name
	}
	return names
}

// lookup returns the dialect with a name.
func lookup(name string) (known, bool) {
	i := slices.IndexFunc(dialects, func(d known) bool { return d.name == name })
	if i < 0 {
		return known{}, false
	}
	return dialects[i], true
}

// Acceptance is one dialect to answer on one port.
type Acceptance struct {
	Dialect string
	Port    uint16 // TCP, UDP or both, as the dialect requires; 0: any free port, never shared
}

// ParseAccept reads a list such as "iperf3,iperf2=5002": names of dialects, each with a port unless
// it is the dialect's default. A name may appear once.
func ParseAccept(list string) ([]Acceptance, error) {
	var accept []Acceptance
	for item := range strings.SplitSeq(list, ",") {
		name, port, given := strings.Cut(strings.TrimSpace(item), "=")
		d, ok := lookup(name)
		if !ok {
			return nil, fmt.Errorf("accept %q: no such dialect; the names are %s", name, strings.Join(Names(), ", "))
		}
		a := Acceptance{Dialect: d.name, Port: d.port}
		if given {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("accept %s: port %q is not a number from 0 to 65535", name, port)
			}
			a.Port = uint16(n)
		}
		if slices.ContainsFunc(accept, func(o Acceptance) bool { return o.Dialect == name }) {
			return nil, fmt.Errorf("accept %s: named twice", name)
		}
		accept = append(accept, a)
	}
	return accept, checkPorts(accept)
}

// checkPorts returns an error if two dialects that cannot share a port have the same one.
func checkPorts(accept []Acceptance) error {
	for i, a := range accept {
		for _, b := range accept[:i] {
			if a.Port != b.Port || a.Port == 0 {
				continue
			}
			for _, name := range []string{a.Dialect, b.Dialect} {
				if d, _ := lookup(name); d.join == nil {
					return fmt.Errorf("accept %s and %s on port %d: %s needs a port of its own", b.Dialect, a.Dialect,
						a.Port, name)
				}
			}
		}
	}
	return nil
}

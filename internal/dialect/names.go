package dialect

import (
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
)

// known is one dialect.
type known struct {
	name   string
	port   uint16
	shares bool // its server can take what a listener of this package hands over
	run    runner
}

// dialects are all there are, in the order in which they are shown.
var dialects = []known{
	{name: "iperf3", port: iperf3.DefaultPort, run: runIperf3},
	{name: "iperf2", port: iperf2.DefaultPort, shares: true, run: runIperf2},
	{name: "ttcp", port: ttcp.DefaultPort, shares: true, run: runTTCP},
	{name: "nuttcp", port: nuttcp.DefaultPort, run: runNuttcp},
	{name: "sockperf", port: sockperf.DefaultPort, run: runSockperf},
	{name: "stamp", port: stamp.DefaultPort, run: runSTAMP},
}

// Names are the names of all dialects.
func Names() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.name
	}
	return names
}

// lookup finds a dialect by its name.
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
	Port    uint16 // TCP, UDP or both, as the dialect has it; 0: any that is free, never shared
}

// ParseAccept reads a list like "iperf3,iperf2=5002": names, each with a port where it is not to be
// the dialect's own. Every name may be there once.
func ParseAccept(list string) ([]Acceptance, error) {
	var accept []Acceptance
	for item := range strings.SplitSeq(list, ",") {
		name, port, given := strings.Cut(strings.TrimSpace(item), "=")
		d, ok := lookup(name)
		if !ok {
			return nil, fmt.Errorf("accept %q: no such dialect; there are %s", name, strings.Join(Names(), ", "))
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

// checkPorts refuses dialects on one port that cannot share it.
func checkPorts(accept []Acceptance) error {
	for i, a := range accept {
		for _, b := range accept[:i] {
			if a.Port != b.Port || a.Port == 0 {
				continue
			}
			for _, name := range []string{a.Dialect, b.Dialect} {
				if d, _ := lookup(name); !d.shares {
					return fmt.Errorf("accept %s and %s on port %d: %s needs a port of its own", b.Dialect, a.Dialect,
						a.Port, name)
				}
			}
		}
	}
	return nil
}

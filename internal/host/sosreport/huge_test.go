package sosreport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// growth is how many times more CPU time four times the interfaces may cost, besides slack: four
// times in linear work, sixteen in quadratic. With 90,000 interfaces the attack below needed 549
// CPU seconds before the work became linear and bounded.
const (
	growth = 8
	slack  = 500 * time.Millisecond
)

// TestHugeReports opens reports that claim 10,000 interfaces, above host.MaxInterfaces. The
// attack costs 7 s at that size, and 0.4 s at a quarter of it.
func TestHugeReports(t *testing.T) {
	testenv.Need(t, testenv.Long)
	const few, many = 2500, 10_000
	const ports = 1200 // of one bond, whose VLANs all have all of them below; above the bound of carriers
	for name, line := range map[string]func(i int) string{
		"independent": func(i int) string { return fmt.Sprintf("%d: v%d: <UP> mtu 1500\n", i, i) },
		"a chain": func(i int) string {
			return fmt.Sprintf("%d: v%d@v%d: <UP> mtu 1500\n    vlan protocol 802.1Q id 1\n", i, i, i-1)
		},
		"all in one bridge": func(i int) string {
			return fmt.Sprintf("%d: v%d: <UP> mtu 1500 master v1\n", i, i)
		},
		"pairs": func(i int) string {
			return fmt.Sprintf("%d: v%d@v%d: <UP> mtu 1500\n    veth\n", i, i, i^1)
		},
		"VLANs on a wide bond": func(i int) string {
			if i < ports {
				return fmt.Sprintf("%d: v%d: <UP> mtu 1500 master v%d\n", i, i, ports)
			}
			return fmt.Sprintf("%d: v%d@v%d: <UP> mtu 1500\n    vlan protocol 802.1Q id 1\n", i, i, ports)
		},
		"names that no kernel has": func(i int) string { return fmt.Sprintf("%d: a/%d: <UP> mtu 1500\n", i, i) },
	} {
		t.Run(name, func(t *testing.T) {
			small := readHuge(t, few, line)
			if large := readHuge(t, many, line); large > growth*small+slack {
				t.Errorf("%d interfaces cost %v of CPU time, %d cost %v", few, small, many, large)
			}
		})
	}
}

// cpuTime is what this process has used so far; a busy machine does not change it.
func cpuTime() time.Duration {
	user, system := sys.ProcessTimes()
	return user + system
}

// readHuge opens a report that claims that many interfaces, and returns the CPU time of that.
func readHuge(t *testing.T, claimed int, line func(i int) string) time.Duration {
	t.Helper()
	var b strings.Builder
	for i := 1; i <= claimed; i++ {
		b.WriteString(line(i))
	}
	ctx, before := t.Context(), cpuTime()
	c := newCollector()
	if err := c.file("sos_commands/networking/ip_-d_address", 0, strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	r, err := c.report(ctx, "")
	if errors.Is(err, ErrFormat) {
		return cpuTime() - before // no interface is left, and nothing else is in it
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Root().Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Interfaces); n > host.MaxInterfaces {
		t.Errorf("%d interfaces are read", n)
	}
	if n := len(r.Warnings) + len(s.Warnings); n > 4*mostSentences {
		t.Errorf("%d warnings", n)
	}
	for _, i := range s.Interfaces {
		if len(i.Carriers) > 1024 {
			t.Fatalf("%s has %d carriers", i.Name, len(i.Carriers))
		}
	}
	return cpuTime() - before
}

// TestReportEndsWithItsContext interrupts the reading of a report, as SIGTERM does.
func TestReportEndsWithItsContext(t *testing.T) {
	c := newCollector()
	err := c.file("sos_commands/networking/ip_-d_address", 0, strings.NewReader("1: v1: <UP> mtu 1500\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.report(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

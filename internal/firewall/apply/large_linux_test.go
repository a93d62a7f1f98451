//go:build soak

package apply_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestTenThousand applies ten thousand rules of nftables and takes them back while packets arrive
// that meet half of them. It prints what docs/evidence/firewall.md says. It takes minutes, so that
// only `make soak` builds it.
func TestTenThousand(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	inNamespace(t, func() {
		tr := newTraffic(t, ruleset.NFT)
		defer tr.end()
		var b strings.Builder
		for i := range 9976 {
			verb := "insert" // in front of the rules that packets match, or behind them
			if i%2 == 0 {
				verb = "add"
			} else {
				tr.ahead++
			}
			fmt.Fprintf(&b, "%s rule ip account count ip saddr 10.%d.%d.%d counter accept comment \"house %d\"\n", verb,
				100+i%3, i/256, i%256, i)
		}
		nft(t, b.String())
		began, cpu := time.Now(), used()
		lap := func(what string) {
			t.Logf("%s: %v, %v of CPU time", what, time.Since(began).Round(time.Millisecond), used()-cpu)
			began, cpu = time.Now(), used()
		}
		p := tr.plan()
		lap("read, rewrite, proof and rehearsal")
		tables := &apply.Tables{Dir: t.TempDir()}
		if err := tables.Add(p); err != nil {
			t.Fatal(err)
		}
		for _, v := range []knob.Value{p.To(), p.From()} {
			tr.start()
			began, cpu = time.Now(), used()
			if err := tables.Write(context.Background(), p.ID(), v); err != nil {
				t.Fatal(err)
			}
			lap("write of " + string(v))
			t.Logf("%d packets in all, %d carried", tr.total(), tr.exact(string(v)))
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(status)) {
			if strings.HasPrefix(l, "VmHWM") {
				t.Log(strings.TrimSpace(l))
			}
		}
	})
}

// used is the CPU time of this process and of those that it waited for.
func used() (d time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		_ = syscall.Getrusage(who, &r) // it cannot fail with these arguments
		d += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return d.Round(10 * time.Millisecond)
}

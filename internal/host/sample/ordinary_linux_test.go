package sample_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

const ordinaryMark = "LINERATE_TEST_ORDINARY"

// names lists the series of a reading.
func names(r *sample.Reading) []string {
	var all []string
	for _, p := range r.Points {
		all = append(all, p.Series.Metric.Name+strings.Join(append([]string{""}, p.Series.Values...), " "))
	}
	slices.Sort(all)
	return all
}

// An ordinary user reads what root reads, but for the queues of programs that judge packets, whose
// file is root's.
func TestOrdinaryUser(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	inWorld(t, func(w *world) {
		w.pair("a", "a1")
		if out, ok := nltest.OtherSays(t, "ip", "link", "add", "q", "numtxqueues", "3", "numrxqueues", "3", "type",
			"veth", "peer", "name", "q1"); !ok {
			t.Fatal(out)
		}
		want := slices.DeleteFunc(names(w.read()),
			func(name string) bool { return name == "linerate_host_drops_total nfqueue" })
		exe, err := os.Executable()
		nltest.Must(t, err)
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestOrdinaryUserChild$")
		cmd.Env = append(os.Environ(), ordinaryMark+"=yes")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "linerate_") {
				got = append(got, strings.TrimSuffix(line, "\n"))
			}
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("an ordinary user does not see %s", name)
			}
		}
		if len(got) != len(want) ||
			!slices.ContainsFunc(got,
				func(name string) bool { return strings.HasPrefix(name, "linerate_queue_packets_total q rx-2") }) {
			t.Errorf("%d series of an ordinary user, %d of root:\n%s", len(got), len(want), out)
		}
	})
}

// TestOrdinaryUserChild is the process that TestOrdinaryUser starts; run directly it tests nothing.
func TestOrdinaryUserChild(t *testing.T) {
	if os.Getenv(ordinaryMark) == "" {
		return
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			t.Fatalf("become an ordinary user: %v", err)
		}
	}
	r := read(t, sampler(t))
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %q", r.Warnings)
	}
	fmt.Println(strings.Join(names(r), "\n"))
}

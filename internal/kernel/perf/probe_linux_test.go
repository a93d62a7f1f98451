package perf

import (
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// processor simulates the kernel's answers about the counters of one.
type processor struct {
	pmu                    bool
	machine, own           error // of opening an event for a CPU, and for this thread
	count, enabled, counts uint64
	opened, closed         int
}

func (p *processor) open(attr *unix.PerfEventAttr, pid, _ int) (int, error) {
	err := p.own
	if pid == -1 {
		err = p.machine
	}
	if err != nil {
		return -1, err
	}
	p.opened++
	return 3, nil
}

func (p *processor) enable(int) error { return nil }

func (p *processor) read(_ int, b []byte) (int, error) {
	binary.NativeEndian.PutUint64(b, p.count)
	binary.NativeEndian.PutUint64(b[8:], p.enabled)
	binary.NativeEndian.PutUint64(b[16:], p.counts)
	return 24, nil
}

func (p *processor) close(int) { p.closed++ }

func (p *processor) counters() bool { return p.pmu }

// TestPermissionReason checks that the answer to the root of a container is not that it needs root.
func TestPermissionReason(t *testing.T) {
	for _, c := range []struct {
		err          error
		root         bool
		want, wanted string
	}{
		{unix.EACCES, false, "needs root, or CAP_PERFMON", ""},
		{unix.EACCES, true, "root of a container", "needs root"},
		{unix.EPERM, true, "seccomp", "needs root"},
		{unix.EPERM, false, "seccomp", "needs root"},
	} {
		got := permissionReason(c.err, c.root)
		if !strings.Contains(got, c.want) || c.wanted != "" && strings.Contains(got, c.wanted) {
			t.Errorf("%v, root %v: %q, want %q", c.err, c.root, got, c.want)
		}
	}
}

// TestProbeAnswers simulates processors: the same ENOENT means a machine without counters and an
// event that this processor lacks, and an event that opens need not count.
func TestProbeAnswers(t *testing.T) {
	cycles := Events()[0]
	for _, c := range []struct {
		name   string
		on     processor
		want   Answer
		reason string
	}{
		{"counts", processor{pmu: true, count: 9, enabled: 5, counts: 5}, Works, ""},
		{"no counters", processor{machine: unix.ENOENT}, NotSupported, "the processor shows no counters"},
		{"an event that this processor lacks", processor{pmu: true, machine: unix.ENOENT}, NotSupported, "no such file"},
		{"no interrupts", processor{pmu: true, machine: unix.EOPNOTSUPP}, NotSupported, "not supported"},
		{"no perf at all", processor{machine: unix.ENOSYS}, NotSupported, "not implemented"},
		{"not permitted", processor{pmu: true, machine: unix.EACCES}, NotPermitted, "CAP_PERFMON"},
		{"not permitted by seccomp", processor{pmu: true, machine: unix.EPERM}, NotPermitted, "seccomp"},
		{"an exclusive user", processor{pmu: true, machine: unix.EBUSY}, Unknown, "busy"},
		{"the thread's own is refused", processor{pmu: true, own: unix.EACCES}, NotPermitted, "CAP_PERFMON"},
		{"never scheduled", processor{pmu: true, enabled: 5}, Unknown, "another program holds the counters"},
		{"a hypervisor's zero", processor{pmu: true, enabled: 5, counts: 5}, Unknown, "did not count"},
		{"out of descriptors", processor{pmu: true, machine: unix.EMFILE}, Unknown, "too many open files"},
	} {
		p := c.on
		got := probe(&p, cycles, 0)
		if got.Answer != c.want || !strings.Contains(got.Reason, c.reason) || got.Answer == Works != (got.Reason == "") {
			t.Errorf("%s: %s, %q, want %s, %q", c.name, got.Answer, got.Reason, c.want, c.reason)
		}
		if p.opened != p.closed {
			t.Errorf("%s: %d events opened, %d closed", c.name, p.opened, p.closed)
		}
	}
}

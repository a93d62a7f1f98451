package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/guest"
)

// The guest is a Debian with two cards. ifupdown manages the first, and NetworkManager the second,
// as Debian configures it.
var (
	system = guest.System{
		Packages: []string{
			"systemd-sysv", "udev", "dbus", "kmod", "dash", "coreutils", "grep", "sed", "findutils", "usr-is-merged",
			"iproute2", "ethtool", "procps", "ifupdown", "network-manager", "strace",
		},
		Modules: []string{"e1000", "af_packet", "sch_fq_codel"},
		Enable:  []string{"networking", "NetworkManager"},
	}
	cards    = []guest.Card{{Model: "e1000"}, {Model: "e1000"}}
	settings = append([]guest.File{
		{Path: "/etc/network/interfaces", Mode: 0o644,
			Content: []byte("auto lo\niface lo inet loopback\n\n" +
				"auto enp0s2\niface enp0s2 inet static\n\taddress 192.0.2.1/24\n")},
		{Path: "/etc/NetworkManager/system-connections/lan.nmconnection", Mode: 0o600,
			Content: []byte("[connection]\nid=lan\nuuid=5b9a1c0e-7c39-4b51-9d0c-0c6b6c6d1a01\n" +
				"type=ethernet\ninterface-name=enp0s3\n\n[ipv4]\nmethod=manual\naddress1=198.51.100.1/24\n\n" +
				"[ipv6]\nmethod=ignore\n")},
	}, patient...)
	patient = []guest.File{
		// Services end after 90 seconds, as systemd-sysusers and systemd-journal-flush do, and Debian
		// gives up on udev after two minutes. A busy emulator exceeds both.
		{Path: "/etc/systemd/system/service.d/patience.conf", Mode: 0o644,
			Content: []byte("[Service]\nTimeoutStartSec=infinity\n")},
		{Path: "/etc/systemd/system/ifupdown-pre.service.d/patience.conf", Mode: 0o644,
			Content: []byte("[Service]\nTimeoutStartSec=infinity\nExecStart=\n" +
				"ExecStart=/bin/udevadm settle --timeout=3600\n")},
	}
)

// patience bounds the test, and ends before `go test -timeout 45m` of dev/test would end the whole
// package without a word about the guest. stepPatience bounds one boot or one script. They guard
// against guests that hang: a boot takes half a minute on a quiet machine, and ten times as long
// where QEMU gets a fifth of a processor.
const (
	patience     = 43 * time.Minute
	stepPatience = 10 * time.Minute
)

var errStep = errors.New("the guest hangs: the step exceeds its bound")

// host is a guest that can be restarted.
type host struct {
	t     *testing.T
	ctx   context.Context
	disk  *guest.Disk
	cards []guest.Card
	g     *guest.Guest
	at    time.Time
	// start is guest.Boot, or guest.Contain for a system on the kernel of this machine.
	start func(context.Context, guest.Options) (*guest.Guest, error)
}

// boot starts the system on the disk and returns when all its units have started.
func (h *host) boot(files ...guest.File) {
	h.t.Helper()
	ctx, cancel := context.WithTimeoutCause(h.ctx, stepPatience, errStep)
	defer cancel()
	// Emulated processors wait for each other: with two, the whole test costs a quarter more.
	g, err := h.start(ctx, guest.Options{CPUs: 1, Disk: h.disk, Cards: h.cards, Files: files})
	if err != nil { // with the end of the console
		h.t.Fatal(err)
	}
	h.g = g
	// Of a system that is not well, the log says why.
	if state := h.sh("systemctl is-system-running --wait || { systemctl list-units --failed; " +
		"journalctl -b -p warning -o short-monotonic --no-pager | tail -n 80; }"); state != "running\n" {
		h.t.Fatalf("the system is %s", state)
	}
	h.passed("boot")
}

// passed logs the duration of a step.
func (h *host) passed(what string) {
	h.t.Logf("%s: %.1f s", what, time.Since(h.at).Seconds())
	h.at = time.Now()
}

// sh runs a script and returns its output. A script that fails ends the test.
func (h *host) sh(script string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeoutCause(h.ctx, stepPatience, errStep)
	defer cancel()
	out, status, err := h.run(ctx, script)
	if err != nil || status != 0 {
		h.t.Fatalf("%s\nstatus %d, %v, %v\n%s%s", script, status, err, context.Cause(ctx), out, h.diagnosis(ctx))
	}
	return out
}

func (h *host) run(ctx context.Context, script string) (out string, status int, err error) {
	var b bytes.Buffer
	status, err = h.g.Run(ctx, guest.Command{Args: []string{"sh", "-ec", script},
		Env: []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin", "NO_COLOR=1"}}, &b, nil)
	return b.String(), status, err
}

// diagnosis shows what a guest that exceeded a bound was doing: the jobs that systemd waits for,
// the processes and where the kernel holds them, its log, and the end of the console. A guest that
// does not answer has only the last.
func (h *host) diagnosis(over context.Context) string {
	if over.Err() == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, _, err := h.run(ctx, `systemctl list-jobs --no-pager; cat /proc/loadavg
		ps -eo pid,ppid,stat,wchan:24,etime,args --sort=pid | grep -v '\]$'
		journalctl -b -o short-monotonic --no-pager | tail -n 40`)
	return fmt.Sprintf("what the guest did:\n%s%v\nthe console ends with:\n%s", out, err, h.g.Console())
}

// says compares the output of a script line by line, without blanks at the ends of lines.
func (h *host) says(script string, want ...string) {
	h.t.Helper()
	var got []string
	for line := range strings.Lines(h.sh(script)) {
		got = append(got, strings.TrimSpace(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("%s (-want +got):\n%s", script, diff)
	}
}

// confined checks that a service has no capabilities, cannot gain any, and runs under a seccomp
// filter.
func (h *host) confined(service string) {
	h.t.Helper()
	h.says(fmt.Sprintf("grep -h '^Cap\\|^NoNewPrivs\\|^Seccomp:' "+
		"/proc/$(systemctl show -p MainPID --value %s)/status | tr '\\t' ' '", service),
		"CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000",
		"CapAmb: 0000000000000000",
		"NoNewPrivs: 1", "Seccomp: 2")
}

// terminated is the status of a program that SIGTERM has ended.
const terminated = 128 + 15

// reboot restarts the system in order. It starts the target that `systemctl reboot` ends in,
// without logind between: on a slow guest logind can fail to load just after systemd has reloaded
// its units. cut ends the system as a power cut does.
func (h *host) reboot() {
	h.t.Helper()
	// The guest may end before it answers, and systemd ends systemctl, too.
	var out bytes.Buffer
	if status, err := h.g.Run(h.ctx, guest.Command{Args: []string{"systemctl", "start", "--no-block", "reboot.target"}},
		&out, nil); err == nil && status != 0 && status != terminated {
		h.t.Fatalf("reboot: status %d\n%s", status, &out)
	}
	ctx, cancel := context.WithTimeoutCause(h.ctx, stepPatience, errStep)
	defer cancel()
	if err := h.g.Wait(ctx); err != nil {
		h.t.Fatalf("%v\n%s", err, h.diagnosis(ctx))
	}
	h.cut()
	h.passed("shutdown")
	h.boot()
}

func (h *host) cut() {
	h.t.Helper()
	if err := h.g.Close(); err != nil {
		h.t.Fatal(err)
	}
}

// tree lists the files that an installation or a change may leave: names, owners, modes and
// contents.
func (h *host) tree() string {
	h.t.Helper()
	return h.sh(`cd /; find etc usr/local usr/lib/systemd var/spool -printf '%M %U %G %p %l\n' | sort
		find etc usr/local -type f | sort | xargs sha256sum`)
}

// values prints the settings that the test changes, read by programs other than linerate.
const values = `sysctl -n net.ipv4.tcp_sack
	for i in enp0s2 enp0s3; do
		cat /sys/class/net/$i/mtu; tc qdisc show dev $i root | cut -d' ' -f2
		ethtool -g $i | sed -n '/Current/,$ { /^[RT]X:/p }' | tr -d '\t'
	done
	cat /sys/class/net/enp0s2/queues/rx-0/rps_cpus`

var (
	defaults = []string{"1", "1500", "fq_codel", "RX:256", "TX:256", "1500", "fq_codel", "RX:256", "TX:256", "0"}
	tuned    = []string{"0", "1400", "pfifo", "RX:512", "TX:256", "1300", "pfifo", "RX:256", "TX:256", "1"}
)

// newHost makes the disk of a host that ends with the test, which has a bound. The test runs beside
// others.
func newHost(t *testing.T, patience time.Duration) *host {
	t.Helper()
	testenv.Need(t, testenv.Guest)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	h := &host{t: t, ctx: ctx, cards: cards, at: time.Now(), start: guest.Boot}
	var err error
	if h.disk, err = guest.NewDisk(ctx, system); err != nil {
		cancel()
		testenv.Missing(t, testenv.Guest, err)
	}
	t.Cleanup(func() {
		if h.g != nil {
			_ = h.g.Close() // a test that failed has not closed it
		}
		cancel()
		if err := h.disk.Close(); err != nil {
			t.Error(err)
		}
	})
	h.passed("disk")
	return h
}

// TestUnderSystemd takes changes through a whole life with a real systemd, udev, ifupdown and
// NetworkManager, with cards and their drivers, restarts and a loss of power. What needs systemd,
// and no kernel of its own, is in TestServicesUnderSystemd.
func TestUnderSystemd(t *testing.T) {
	h := newHost(t, patience)
	files := []guest.File{program(t)}
	h.passed("programs")
	h.boot(append(files, settings...)...)
	whole := h.t
	for _, part := range []struct {
		name string
		play func()
	}{{"changes", h.changes}, {"plan", h.plan}} {
		if !whole.Run(part.name, func(t *testing.T) {
			h.t = t
			part.play()
		}) {
			return // the next part begins with the host that this one leaves
		}
	}
}

// changes are persisted, cut off by a loss of power, recovered by the unit, checked and undone;
// after a restart nothing of them is left. The far side is enabled meanwhile, and comes back with
// both boots.
func (h *host) changes() {
	h.keepFarSide()
	untouched, names := h.tree(), h.sh(named)
	h.says(values, defaults...)

	h.persist()
	h.sh("linerate recover --install")
	h.unitIsSound()
	h.passed("set, persist, install")
	h.persistHalfway()
	h.passed("a change on its way")
	h.cut()
	h.boot()

	h.dispatched()
	h.farSideIsBack()
	h.says(values, tuned...)
	h.says("linerate persist --check --json | grep -o '\"state\":\"[a-z]*\"' | sort | uniq -c", "7 \"state\":\"held\"")
	h.unitRan()
	h.says("linerate history --json | grep -o '\"state\":\"[a-z]*\"' | sort | uniq -c", "7 \"state\":\"persisted\"",
		"2 \"state\":\"undone\"")
	h.says("linerate recover", "nothing to recover")
	h.sh("linerate undo --all")
	h.says(values, defaults...)
	h.says("linerate recover --uninstall", "removed /etc/systemd/system/linerate-recover.service",
		"systemd forgets it at the next start, or now by: systemctl daemon-reload")
	h.says(`systemctl list-unit-files 'linerate-recover*' --no-legend || true
		systemctl show -p NeedDaemonReload linerate-recover`, "NeedDaemonReload=yes")
	h.says("systemctl daemon-reload; systemctl show -p LoadState linerate-recover", "LoadState=not-found")
	h.same(untouched, "after undo and uninstall")
	h.passed("recovered, undone, uninstalled")
	h.reboot()

	h.says(values, defaults...)
	h.same(untouched, "after one more restart")
	if diff := cmp.Diff(names, h.sh(named)); diff != "" {
		h.t.Errorf("files by name (-before +after):\n%s", diff)
	}
	h.says("systemctl show -p LoadState linerate-recover", "LoadState=not-found")
	h.farSideIsBack()
	h.endFarSide()
}

// named lists the files with the name of the program outside its state and its own place.
const named = "find / -xdev -name '*linerate*' -not -path '/var/lib/linerate*' -not -path '/usr/local/*' | sort"

func (h *host) same(before, when string) {
	h.t.Helper()
	if diff := cmp.Diff(before, h.tree()); diff != "" {
		h.t.Errorf("%s (-before +after):\n%s", when, diff)
	}
}

// persist makes and persists seven changes. Together they use every format that this host has.
func (h *host) persist() {
	h.t.Helper()
	h.sh(`until linerate set --allow d3 --for 10m sysctl:net.ipv4.tcp_sack=0 ethtool:enp0s2/ring.rx=512 ` +
		`link:enp0s2/mtu=1400 \
		qdisc:enp0s2/root=pfifo queue:enp0s2/rx-0/rps_cpus=1 link:enp0s3/mtu=1300 qdisc:enp0s3/root=pfifo
		do sleep 1; done
		until linerate confirm 1 2 3 4 5 6 7; do [ $? = 11 ] || exit 1; sleep 1; done`)
	h.says(values, tuned...)
	// The guards of the trials before may be at work, for longer in an emulator than a command waits.
	h.says(`until linerate persist --json >/run/persisted; do [ $? = 11 ] || exit 1; sleep 1; done
		grep -o '"knob":"[^"]*"\|"format":"[^"]*"' /run/persisted | cut -d'"' -f4 | paste -d' ' - -`,
		"sysctl:net.ipv4.tcp_sack sysctl.d", "ethtool:enp0s2/ring.rx systemd.link", "link:enp0s2/mtu systemd.link",
		"qdisc:enp0s2/root ifupdown",
		"queue:enp0s2/rx-0/rps_cpus udev", "link:enp0s3/mtu NetworkManager", "qdisc:enp0s3/root NetworkManager")
	// The programs that read these files accept them.
	h.says(`systemd-analyze cat-config sysctl.d | grep ^net.*tcp_sack
		NetworkManager --print-config | grep -A2 '^\[connection-linerate'
		run-parts --test /etc/network/if-up.d | grep linerate`,
		"net.ipv4.tcp_sack = 0", "[connection-linerate-enp0s3]", "match-device=interface-name:enp0s3",
		"ethernet.mtu=1300", "/etc/network/if-up.d/linerate-0004")
}

// persistHalfway leaves a trial, and a change with a file that the journal does not record yet:
// strace(1) holds the writer after the rename that puts the file in place.
func (h *host) persistHalfway() {
	h.t.Helper()
	h.sh(`file=/etc/systemd/network/60-linerate-enp0s3.link.d/90-linerate-0008.conf
		# linerate refuses a guard that an overloaded emulator keeps from answering, and changes nothing.
		until linerate set --allow d3 --yes ethtool:enp0s3/ring.tx=512; do sleep 1; done
		until linerate set --for 10m sysctl:net.ipv4.tcp_frto=1; do sleep 1; done
		systemd-run --quiet --unit=halfway -E PATH=$PATH strace -f -o /run/strace -P $file -e trace=/rename \
			-e inject=/rename:delay_exit=600000000 linerate persist 8
		until [ -e $file ]; do sleep 0.3; done
		sync`)
	h.says("sysctl -n net.ipv4.tcp_frto; linerate history --json | grep -o '\"state\":\"[a-z]*\"' | sort | uniq -c",
		"1",
		"1 \"state\":\"committed\"", "7 \"state\":\"persisted\"", "1 \"state\":\"trial\"")
}

// dispatched waits for the script that NetworkManager runs when a connection is up: no unit waits
// for it. The test's patience ends the wait.
func (h *host) dispatched() {
	h.t.Helper()
	h.sh("until tc qdisc show dev enp0s3 root | grep -q pfifo; do sleep 1; done")
}

// unitIsSound checks that systemd accepts the unit.
func (h *host) unitIsSound() {
	h.t.Helper()
	h.says("systemd-analyze verify linerate-recover.service 2>&1")
	h.says("systemctl show -p LoadState,UnitFileState,NeedDaemonReload linerate-recover", "LoadState=loaded",
		"UnitFileState=enabled", "NeedDaemonReload=no")
}

// unitRan checks that recovery ended before systemd set sysctls and before the network came up.
func (h *host) unitRan() {
	h.t.Helper()
	h.says("systemctl show -p Result,ActiveState linerate-recover", "Result=success", "ActiveState=inactive")
	stamp := func(property, unit string) uint64 {
		h.t.Helper()
		text := strings.TrimSpace(h.sh(fmt.Sprintf("systemctl show --value -p %s %s", property, unit)))
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n == 0 {
			h.t.Fatalf("%s of %s is %q: it did not run", property, unit, text)
		}
		return n
	}
	over := stamp("ExecMainExitTimestampMonotonic", "linerate-recover")
	h.t.Log(strings.TrimSpace(h.sh("journalctl -b -u linerate-recover --no-pager -o short-monotonic")))
	for _, unit := range []string{"systemd-sysctl", "networking", "NetworkManager"} {
		if began := stamp("ExecMainStartTimestampMonotonic", unit); began < over {
			h.t.Errorf("%s began %d us before recovery was over", unit, over-began)
		}
	}
}

// program returns linerate as `make build` builds it.
func program(t *testing.T) guest.File {
	t.Helper()
	b, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	return guest.File{Path: "/usr/local/bin/linerate", Content: b, Mode: 0o755}
}

// builtProgram and builtHub build the programs once for all tests: go keeps no linked programs, and
// linking them takes seconds.
var (
	builtProgram = sync.OnceValues(func() ([]byte, error) { return build(".", ".") })
	builtHub     = sync.OnceValues(func() ([]byte, error) { return build("../../hub", "./cmd/linerate-hub") })
)

func build(module, pkg string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "linerate-build-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // it holds nothing else
	name := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-C", module, "-trimpath", "-ldflags", "-s -w", "-o", name, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s of %s: %w\n%s", pkg, module, err, out)
	}
	return os.ReadFile(name)
}

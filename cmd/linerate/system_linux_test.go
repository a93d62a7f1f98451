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
	settings = []guest.File{
		{Path: "/etc/network/interfaces", Mode: 0o644,
			Content: []byte("auto lo\niface lo inet loopback\n\n" +
				"auto enp0s2\niface enp0s2 inet static\n\taddress 192.0.2.1/24\n")},
		{Path: "/etc/NetworkManager/system-connections/lan.nmconnection", Mode: 0o600,
			Content: []byte("[connection]\nid=lan\nuuid=5b9a1c0e-7c39-4b51-9d0c-0c6b6c6d1a01\n" +
				"type=ethernet\ninterface-name=enp0s3\n\n[ipv4]\nmethod=manual\naddress1=198.51.100.1/24\n\n" +
				"[ipv6]\nmethod=ignore\n")},
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
}

// boot starts the system on the disk and returns when all its units have started.
func (h *host) boot(files ...guest.File) {
	h.t.Helper()
	ctx, cancel := context.WithTimeoutCause(h.ctx, stepPatience, errStep)
	defer cancel()
	// Emulated processors wait for each other: with two, the whole test costs a quarter more.
	g, err := guest.Boot(ctx, guest.Options{CPUs: 1, Disk: h.disk, Cards: h.cards, Files: files})
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
	h := &host{t: t, ctx: ctx, cards: cards, at: time.Now()}
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
// NetworkManager, and then runs the services on the host that is as it was before. One guest serves
// both, because its boot costs more than either.
func TestUnderSystemd(t *testing.T) {
	h := newHost(t, patience)
	files := []guest.File{program(t), hubProgram(t), asker(t)}
	h.passed("programs")
	h.boot(append(files, settings...)...)
	whole := h.t
	for _, part := range []struct {
		name string
		play func()
	}{{"changes", h.changes}, {"services", h.services}} {
		if !whole.Run(part.name, func(t *testing.T) {
			h.t = t
			part.play()
		}) {
			return // the next part begins with the host that this one leaves
		}
	}
}

// services applies a plan and undoes it, and runs the agent, the far side, the hub and
// the agent with orders by the units that are shipped.
func (h *host) services() {
	h.sh("rm -rf /var/lib/linerate") // the journal of the other part
	h.plan()
	h.agent()
	h.farSide()
	h.hub()
	h.node()
	h.orders() // the journal that the hub has read goes
}

// changes are persisted, cut off by a loss of power, recovered by the unit, checked and undone;
// after a restart nothing of them is left. The far side is enabled meanwhile, and comes back with
// both boots.
func (h *host) changes() {
	h.keepFarSide()
	untouched, names := h.tree(), h.sh(named)
	h.says(values, defaults...)

	h.endUnits()
	h.persist()
	h.sh("linerate recover --install")
	h.unitIsSound()
	h.passed("set, persist, install")
	h.guardsDone()
	h.secondLine()
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
		"4 \"state\":\"undone\"")
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

// endUnits makes two trials, each in a unit of its own, and ends the units: one as an administrator
// does, the other by killing all its processes at once. The guards must outlive them.
//
// The trials last a fixed time, and an emulator may be so slow that they end before the test looks.
// The test then judges nothing: it starts again, with an empty state and twice the time.
func (h *host) endUnits() {
	h.t.Helper()
	for seconds := 40; ; seconds *= 2 {
		var started string
		units := map[string]string{"stopped": "net.ipv4.tcp_frto=1", "killed": "net.ipv4.tcp_dsack=0"}
		for unit, setting := range units {
			if started == "" {
				started = h.sh("cut -d. -f1 /proc/uptime")
			}
			h.sh(fmt.Sprintf(`systemd-run --quiet --collect --unit=%s sh -c '
				until linerate set --for %ds sysctl:%s; do sleep 1; done
				touch /run/%[1]s; sleep infinity'
				until [ -e /run/%[1]s ]; do sleep 0.3; done`, unit, seconds, setting))
		}
		h.sh(`systemctl stop stopped; systemctl kill --signal=KILL --kill-whom=all killed
			while systemctl is-active --quiet stopped killed; do sleep 0.3; done`)
		got := h.sh(`sysctl -n net.ipv4.tcp_frto net.ipv4.tcp_dsack
			systemctl list-units --no-legend --plain 'linerate-guard-*.scope' | cut -d' ' -f2-4`)
		if early := h.sh(fmt.Sprintf("[ $(cut -d. -f1 /proc/uptime) -ge $((%s + %d)) ] || echo early",
			strings.TrimSpace(started), seconds)); early == "early\n" {
			if want := "1\n0\nloaded active running\nloaded active running\n"; got != want {
				h.t.Errorf("values and guards after the units: %q, want %q", got, want)
			}
			break
		}
		h.t.Logf("no verdict: the emulator needs more than %d s", seconds)
		h.guardsDone()
		h.sh("rm -rf /var/lib/linerate /run/stopped /run/killed")
	}
	h.passed("two units ended")
}

// guardsDone waits until the guards have ended. They have put the values back and removed their
// scopes.
func (h *host) guardsDone() {
	h.t.Helper()
	h.sh("while systemctl is-active --quiet 'linerate-guard-*.scope'; do sleep 1; done")
	h.says(`sysctl -n net.ipv4.tcp_frto net.ipv4.tcp_dsack; systemctl list-units --all --no-legend 'linerate*.scope'
		linerate history --json | grep -o '"state":"[a-z]*"' | head -n2`,
		"2", "1", "\"state\":\"undone\"", "\"state\":\"undone\"")
	h.passed("guards done")
}

// secondLine kills a guard, and stops one: the timer that systemd keeps for it takes the trial
// back, and goes. The guard of a trial of 20 s is gone at once, so only an emulator that needs 20 s
// for that ends the trial in another way; the test then starts again with twice the time.
func (h *host) secondLine() {
	h.t.Helper()
	for _, signal := range []string{"KILL", "STOP"} {
		for seconds := 20; ; seconds *= 2 {
			got := h.sh(fmt.Sprintf(`state=/run/second-%[2]s-%[1]d
				while systemctl is-active --quiet 'linerate-later-*.timer'; do sleep 0.3; done # of guards before
				until linerate --state $state set --for %[1]ds sysctl:net.ipv4.tcp_frto=1 >/dev/null; do sleep 1; done
				until systemctl is-active --quiet 'linerate-later-*.timer'; do sleep 0.3; done
				pkill -%[2]s -f -- "guard --state $state "
				until [ $(sysctl -n net.ipv4.tcp_frto) = 2 ]; do sleep 0.5; done
				while systemctl is-active --quiet 'linerate-later-*.timer'; do sleep 0.3; done
				pkill -KILL -f -- "guard --state $state " || true # one that is stopped
				linerate --state $state history --json | grep -o '"note":"[^"]*"'`, seconds, signal))
			if got != "\"note\":\"undone by guard: deadline passed\"\n" {
				if want := "\"note\":\"undone by recovery: deadline passed\"\n"; got != want {
					h.t.Errorf("the second line of defence after SIG%s: %q, want %q", signal, got, want)
				}
				break
			}
			h.t.Logf("no verdict: the emulator needs more than %d s", seconds)
		}
	}
	h.passed("a guard killed, one stopped, their timers done")
}

// persist makes and persists seven changes. Together they use every format that this host has.
func (h *host) persist() {
	h.t.Helper()
	h.sh(`until linerate set --allow d3 --for 10m sysctl:net.ipv4.tcp_sack=0 ethtool:enp0s2/ring.rx=512 ` +
		`link:enp0s2/mtu=1400 \
		qdisc:enp0s2/root=pfifo queue:enp0s2/rx-0/rps_cpus=1 link:enp0s3/mtu=1300 qdisc:enp0s3/root=pfifo
		do sleep 1; done
		until linerate confirm 3 4 5 6 7 8 9; do [ $? = 11 ] || exit 1; sleep 1; done`)
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
		"ethernet.mtu=1300", "/etc/network/if-up.d/linerate-0006")
}

// persistHalfway leaves a trial, and a change with a file that the journal does not record yet:
// strace(1) holds the writer after the rename that puts the file in place.
func (h *host) persistHalfway() {
	h.t.Helper()
	h.sh(`file=/etc/systemd/network/60-linerate-enp0s3.link.d/90-linerate-0010.conf
		# linerate refuses a guard that an overloaded emulator keeps from answering, and changes nothing.
		until linerate set --allow d3 --yes ethtool:enp0s3/ring.tx=512; do sleep 1; done
		until linerate set --for 10m sysctl:net.ipv4.tcp_frto=1; do sleep 1; done
		systemd-run --quiet --unit=halfway -E PATH=$PATH strace -f -o /run/strace -P $file -e trace=/rename \
			-e inject=/rename:delay_exit=600000000 linerate persist 10
		until [ -e $file ]; do sleep 0.3; done
		sync`)
	h.says("sysctl -n net.ipv4.tcp_frto; linerate history --json | grep -o '\"state\":\"[a-z]*\"' | sort | uniq -c",
		"1",
		"1 \"state\":\"committed\"", "7 \"state\":\"persisted\"", "1 \"state\":\"trial\"", "2 \"state\":\"undone\"")
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

// program builds linerate as `make build` does.
func program(t *testing.T) guest.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "linerate")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", name, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	b, readErr := os.ReadFile(name)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return guest.File{Path: "/usr/local/bin/linerate", Content: b, Mode: 0o755}
}

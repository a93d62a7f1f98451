package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/guest"
)

// unmanaged keeps the programs that manage networks from the cards of a container, which udev does
// not announce.
func unmanaged() (files []guest.File) {
	for _, unit := range []string{"NetworkManager", "NetworkManager-wait-online", "networking", "ifupdown-pre"} {
		files = append(files, guest.File{Path: "/etc/systemd/system/" + unit + ".service.d/none.conf", Mode: 0o644,
			Content: []byte("[Unit]\nConditionPathExists=/run/never\n")})
	}
	return files
}

// TestServicesUnderSystemd runs the guards of trials, the agent, the far side, the hub, its node
// and the agent with orders by the units that are shipped, under a real systemd. Nothing in it
// needs a driver, a restart or a kernel of its own, so its system runs on the kernel of this
// machine.
func TestServicesUnderSystemd(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	h := newHost(t, patience)
	h.start = guest.Contain
	files := append([]guest.File{program(t), hubProgram(t), asker(t)}, patient...)
	h.passed("programs")
	h.boot(append(files, unmanaged()...)...)
	h.contained()
	h.sh(`for i in 2 3; do ip link add enp0s$i type veth peer far$i; ip link set enp0s$i up; ip link set far$i up; done`)
	h.endUnits()
	h.guardsDone()
	h.secondLine()
	h.sh("rm -rf /var/lib/linerate") // the journal of the guards
	h.agent()
	h.farSide()
	h.hub()
	h.node()
	h.orders() // the journal that the hub has read goes
	h.t.Log("processor time of the system:", h.sh("head -n1 /sys/fs/cgroup/cpu.stat"))
	h.cut() // fails if a process or a control group stays
	for h.mountsDisk() {
		if h.ctx.Err() != nil {
			h.t.Fatal("a loop device keeps the disk of a container that has ended")
		}
		time.Sleep(100 * time.Millisecond) // the kernel frees it after the last process
	}
}

// mountsDisk reports whether a loop device of this machine has the disk of a test.
func (h *host) mountsDisk() bool {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		b, err := os.ReadFile(name)
		return err == nil && strings.TrimSpace(string(b)) == h.disk.Name()
	})
}

// contained checks that the system reaches nothing of this machine: no setting outside its network,
// no device, no module, no card and no process.
func (h *host) contained() {
	h.t.Helper()
	h.says(`for setting in kernel.panic vm.swappiness fs.file-max; do
			sysctl -qw $setting=$(sysctl -n $setting) 2>/dev/null || echo $setting refused
		done
		mknod /tmp/disk b 7 0 2>/dev/null || echo device refused
		ls /sys/class/net; ls /dev | grep -c '^loop\|^vd\|^sd\|^mem$\|^kmsg$' || true
		cat /proc/1/comm; cat /proc/1/cgroup | grep ^0:; uname -n`,
		"kernel.panic refused", "vm.swappiness refused", "fs.file-max refused",
		"device refused", "lo", "0", "systemd", "0::/init.scope", "guest")
	h.says("sysctl -qw net.ipv4.tcp_sack=1 && echo written", "written")
	bound := strings.TrimSpace(h.sh("sed -n 's/^CapBnd:\t//p' /proc/1/status"))
	capabilities, err := strconv.ParseUint(bound, 16, 64)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range []uint{unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_TIME, unix.CAP_SYSLOG,
		unix.CAP_MKNOD} {
		if capabilities&(1<<c) != 0 {
			h.t.Errorf("the system can get capability %d", c)
		}
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
				pkill -%[2]s -f -- "guard --state $state " || true # it may have come to the deadline
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

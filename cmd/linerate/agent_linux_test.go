package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/peer/agent"
)

// TestAskChild is the program that asks an agent in the guest. Without ASK_AGENT it does nothing.
func TestAskChild(t *testing.T) {
	socket := os.Getenv("ASK_AGENT")
	if socket == "" {
		return
	}
	// The first question starts the agent, which is slow in an emulator that shares its machine.
	ctx, cancel := context.WithTimeout(t.Context(), patience/3)
	defer cancel()
	c := agent.NewClient(socket)
	defer c.Close()
	if _, err := c.State(ctx); err != nil {
		fmt.Println("refused:", err)
		return
	}
	changes, err := c.History(ctx)
	fmt.Println("changes:", len(changes), err)
	ids, err := c.Runs(ctx, runs.Tunes)
	fmt.Println("runs:", ids, err)
	for _, id := range ids {
		doc, err := c.Run(ctx, runs.Tunes, id)
		fmt.Println("document:", string(doc), err)
	}
}

// asker returns TestAskChild as a program of the guest.
func asker(t *testing.T) guest.File {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return guest.File{Path: "/usr/local/bin/ask", Content: self, Mode: 0o755}
}

// ship puts a file of dist where a package puts it.
func (h *host) ship(name, dir string) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join("../../dist", name))
	if err != nil {
		h.t.Fatal(err)
	}
	h.sh(fmt.Sprintf("mkdir -p %s; cat >%[1]s/%s <<'END'\n%sEND\n", dir, filepath.Base(name), text))
}

// agent starts the agent by the units that are shipped, and asks it as a hub does: from a unit with
// a dynamic user, first in the agent's group and then outside it.
func (h *host) agent() {
	h.t.Helper()
	h.sh("echo linerate:x:987: >>/etc/group")
	h.ship("systemd/linerate-agent.socket", "/etc/systemd/system")
	h.ship("systemd/linerate-agent.service", "/etc/systemd/system")
	h.sh(`until linerate set --yes sysctl:net.ipv4.tcp_sack=0; do sleep 1; done
		mkdir -pm 700 /var/lib/linerate/runs; umask 077
		echo '{"schema": "linerate.tune/1"}' >/var/lib/linerate/runs/20261122-110000-0001.json
		systemctl daemon-reload; systemctl start linerate-agent.socket`)
	h.says(`stat -c '%a %U %G' /run/linerate /run/linerate/agent.sock
		systemctl is-active linerate-agent.service || true`, "755 root root", "660 root linerate", "inactive")
	ask := "systemd-run --quiet --pipe --wait -p DynamicUser=yes -p PrivateUsers=yes %s -p WorkingDirectory=/ " +
		"-E ASK_AGENT=/run/linerate/agent.sock ask -test.run=^TestAskChild$ | grep :"
	h.says(fmt.Sprintf(ask, "-p SupplementaryGroups=linerate")+" | sed 's/changes: [1-9][0-9]*/changes: some/'",
		"changes: some <nil>", "runs: [20261122-110000-0001] <nil>", `document: {"schema":"linerate.tune/1"} <nil>`)
	h.says(fmt.Sprintf(ask, ""),
		"refused: ask agent at /run/linerate/agent.sock: dial unix /run/linerate/agent.sock: connect: permission denied")
	h.confined("linerate-agent")
	h.sh("systemctl stop linerate-agent.service linerate-agent.socket")
	h.says("systemctl show -p Result linerate-agent.service; ls -A /run/linerate", "Result=success")
	h.passed("agent")
}

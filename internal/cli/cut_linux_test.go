package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// TestWireIsCut cuts the wire without a reset or the end of a connection while a far change is in
// trial: every setting goes back, tune ends with the status of an unreachable peer and one
// sentence, and the journals record what happened.
func TestWireIsCut(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	for name, reach := range map[string]func(t *testing.T, k *killWorld) string{
		"serve": func(_ *testing.T, k *killWorld) string { return k.Far().Address },
		"ssh":   serveSSH,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKillWorld(t, true)
			target := reach(t, k)
			k.before = k.settings(t)
			tune, said := k.holdFar(t, target, farWindow+","+nearBuffer)
			if err := k.SetLink(t.Context(), scenario.Link{ToFar: link.Params{LossRatio: 1}}); err != nil {
				t.Fatal(err)
			}
			var exit *lab.ExitError
			if err := tune.Wait(); !errors.As(err, &exit) || exit.Code != 12 {
				t.Errorf("tune ended with %v, want exit status 12", err)
			}
			// The kernel's bound on the silence and our own are close: either can come first.
			sentence := regexp.MustCompile(
				`(?m)^linerate: the connection to the other host is lost ` +
					`\((nothing heard for 8s|connection timed out)\): ` +
					`trials on this host were undone, and the guard on that host undoes its own$`)
			if n := strings.Count(said.String(), "linerate: "); n != 1 || !sentence.MatchString(said.String()) {
				t.Errorf("%d sentences, want only %s:\n%s", n, sentence, said)
			}
			await(t, "every setting to come back", func() bool { return cmp.Equal(k.before, k.settings(t)) })
			for _, h := range []*lab.Host{k.Near(), k.Far()} {
				k.recovers(t, h)
				if h == k.Far() { // the near host need not have changed anything yet
					k.showsUndone(t, h)
				}
				if _, err := k.command(t.Context(), h, "undo", "--all", "--here").Output(); err != nil {
					t.Errorf("undo --all at %s: %v", h.Name, err)
				}
			}
			if diff := cmp.Diff(k.before, k.settings(t)); diff != "" {
				t.Errorf("undo changed something (-before +now):\n%s", diff)
			}
		})
	}
}

// showsUndone checks that the history of a host has changes, and that all of them are undone.
func (k *killWorld) showsUndone(t *testing.T, h *lab.Host) {
	t.Helper()
	out, err := k.command(t.Context(), h, "history", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Changes []struct{ Knob, State string } `json:"changes"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Changes) == 0 {
		t.Errorf("%s shows no change (%v): %s", h.Name, err, out)
	}
	for _, c := range doc.Changes {
		if c.State != "undone" {
			t.Errorf("%s: %s is %s", h.Name, c.Knob, c.State)
		}
	}
}

// serveSSH runs an OpenSSH server in the far host, and puts an ssh that knows its way there into
// the state directory's bin. The far linerate has the same journal as the world's own.
func serveSSH(t *testing.T, k *killWorld) string {
	t.Helper()
	testenv.Need(t, testenv.SSHD)
	at := func(name string) string { return filepath.Join(k.state, name) }
	for _, key := range []string{"hostkey", "userkey"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
			at(key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	if err := os.MkdirAll(at("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where no service has made it at boot
			t.Fatal(err)
		}
	}
	linerate, err := exec.LookPath("linerate")
	if err != nil {
		t.Fatal(err)
	}
	if linerate, err = filepath.EvalSymlinks(linerate); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(linerate, at("bin/linerate")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"sshd_config": fmt.Sprintf(
			"ListenAddress %s:2222\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\n"+
				"StrictModes no\nUsePAM no\nPasswordAuthentication no\n"+
				"SetEnv PATH=%s:/usr/bin:/bin LINERATE_STATE=%s\n", k.Far().Address, at("hostkey"), at("userkey.pub"),
			at("bin"), at("far")),
		"bin/ssh": fmt.Sprintf(
			"#!/bin/sh\n"+
				"exec /usr/bin/ssh -F none -i %s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "+
				"-o LogLevel=ERROR \"$@\"\n", at("userkey")),
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	server := k.Far().Exec(t.Context(), "/usr/sbin/sshd", "-D", "-e", "-f", at("sshd_config"))
	log := &syncBuffer{}
	server.Stderr = log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "sshd to listen", func() bool { return strings.Contains(log.String(), "listening on") })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("sshd:\n%s", log)
		}
	})
	return "ssh://" + k.Far().Address + ":2222"
}

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

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// TestWireIsCut cuts the wire without a word, no reset and no end of a connection, while settings
// of both hosts are in trial: both go back by themselves, tune ends with the status of an
// unreachable peer and one sentence, and both journals tell what happened.
func TestWireIsCut(t *testing.T) {
	for name, reach := range map[string]func(t *testing.T, k *killWorld) string{
		"serve": func(_ *testing.T, k *killWorld) string { return k.Far().Address },
		"ssh":   serveSSH,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKillWorld(t, true)
			target := reach(t, k)
			k.before = k.settings(t)
			// The far window is the fault; what is tried at the near host beside it may put both in
			// trial.
			tune := k.command(t.Context(), k.Near(), "tune", target, "--knobs",
				"sysctl:net.ipv4.tcp_rmem,sysctl:net.ipv4.tcp_wmem", "--thorough",
				"--duration", "100ms", "--warm-up", "60ms", "--progress", "lines")
			tune.Env = append(tune.Env, "PATH="+filepath.Join(k.state, "bin")+string(os.PathListSeparator)+
				os.Getenv("PATH"))
			said := &syncBuffer{}
			tune.Stderr = said
			if err := tune.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- tune.Wait() }()
			lives := func() bool {
				if len(ended) > 0 {
					t.Fatalf("tune ended: %v\n%s", <-ended, said)
				}
				return true
			}
			await(t, "the path to be measured",
				func() bool { return lives() && strings.Contains(said.String(), "try far") })
			// How long both are is a matter of the machine: on a slow one the near trial is over
			// before anybody looks.
			await(t, "the far setting to be in trial", func() bool {
				return lives() && !cmp.Equal(k.before[1], k.settings(t)[1])
			})
			if err := k.SetLink(t.Context(), scenario.Link{ToFar: link.Params{LossRatio: 1}}); err != nil {
				t.Fatal(err)
			}
			var exit *lab.ExitError
			if err := <-ended; !errors.As(err, &exit) || exit.Code != 12 {
				t.Errorf("tune ended with %v, want exit status 12", err)
			}
			// Which bound of the silence is reached first is a matter of moments: that of the
			// kernel or our own.
			sentence := regexp.MustCompile(
				`(?m)^linerate: the other host is gone \((nothing heard for 8s|connection timed out)\): ` +
					`what was in trial here was taken back, and that host takes its own trials back by itself$`)
			if n := strings.Count(said.String(), "linerate: "); n != 1 || !sentence.MatchString(said.String()) {
				t.Errorf("%d sentences, want only %s:\n%s", n, sentence, said)
			}
			await(t, "every setting to come back", func() bool { return cmp.Equal(k.before, k.settings(t)) })
			for _, h := range []*lab.Host{k.Near(), k.Far()} {
				k.recovers(t, h)
				if h == k.Far() { // the near host need not have changed anything yet
					k.tellsUndone(t, h)
				}
				if _, err := k.command(t.Context(), h, "undo", "--all").Output(); err != nil {
					t.Errorf("undo --all at %s: %v", h.Name, err)
				}
			}
			if diff := cmp.Diff(k.before, k.settings(t)); diff != "" {
				t.Errorf("undo changed something (-before +now):\n%s", diff)
			}
		})
	}
}

// tellsUndone wants the history of a host to have changes, and all of them undone.
func (k *killWorld) tellsUndone(t *testing.T, h *lab.Host) {
	t.Helper()
	out, err := k.command(t.Context(), h, "history", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Changes []struct{ Knob, State string } `json:"changes"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Changes) == 0 {
		t.Errorf("%s tells no change (%v): %s", h.Name, err, out)
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
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // else made by the service at boot
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
			"ListenAddress %s:2222\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"+
				"SetEnv PATH=%s:/usr/bin:/bin LINERATE_STATE=%s\n", k.Far().Address, at("hostkey"), at("userkey.pub"),
			at("bin"), at("far")),
		"bin/ssh": fmt.Sprintf(
			"#!/bin/sh\nexec /usr/bin/ssh -F none -i %s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \"$@\"\n", at("userkey")),
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

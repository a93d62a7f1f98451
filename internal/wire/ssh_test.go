package wire_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/wire"
)

// fakeSSH replaces ssh by a shell script. Package peer tests with a real server.
func fakeSSH(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the replacement for ssh is a shell script")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// answersG is the part of ssh's answer to -G that this package reads.
const answersG = `case "$1" in -G) echo "hostname real.example"; echo "connecttimeout 7"; exit 0;; esac
`

func TestSSHGivesChannelAndAddress(t *testing.T) {
	fakeSSH(t, answersG+`echo "Welcome to this host"
echo "linerate/1 data-port=4711"
exec cat`)
	c, addr, err := wire.SSH(bounded(t), "ssh://me@alias:22", nil)
	if err != nil {
		t.Fatal(err)
	}
	if addr != "real.example:4711" {
		t.Errorf("the data address is %q", addr)
	}
	// The far end is cat, which returns every frame.
	if err := c.Send(t.Context(), "echo", "text"); err != nil {
		t.Fatal(err)
	}
	if m := receive(t, c); m.Type != "echo" {
		t.Errorf("got %+v", m)
	}
	if c.RemoteAddr() != nil {
		t.Errorf("address %v", c.RemoteAddr())
	}
	c.Close()
	if _, err := c.Receive(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestSSHEndsMidway(t *testing.T) {
	fakeSSH(t, answersG+
		`echo "linerate/1 data-port=4711"; echo "ssh: Connection to far closed by remote host." >&2; exit 255`)
	c, _, err := wire.SSH(bounded(t), "ssh://far", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Receive(bounded(t))
	if !errors.Is(err, wire.ErrPeerGone) || !strings.Contains(err.Error(), "closed by remote host") {
		t.Errorf("got %v", err)
	}
}

func TestSSHExplainsWhyNot(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		kind   error
		text   string
	}{
		"refused": {"echo 'ssh: connect to host far port 22: Connection refused' >&2; exit 255",
			wire.ErrUnreachable, "ssh: connect to host far port 22: Connection refused"},
		"no program":   {"echo 'sh: 1: linerate: not found' >&2; exit 127", wire.ErrNotLinerate, "linerate: not found"},
		"ends at once": {"exit 0", wire.ErrNotLinerate, "without linerate's greeting"},
		"chatters":     {"yes", wire.ErrNotLinerate, "no greeting"},
		"one line":     {"exec cat /dev/zero", wire.ErrNotLinerate, "no greeting"},
		"says nothing": {"exec sleep 60", wire.ErrUnreachable, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeSSH(t, answersG+c.script)
			patience := time.Minute
			if c.text == "deadline" {
				patience = 500 * time.Millisecond // the only case that waits for the timeout
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _, err := wire.SSH(ctx, "ssh://far", nil)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v and the text %q", err, c.kind, c.text)
			}
			var e *wire.Error
			if !errors.As(err, &e) || e.Hint() == "" {
				t.Errorf("%v has no advice", err)
			}
		})
	}
	t.Run("given up", func(t *testing.T) {
		fakeSSH(t, answersG+"exec sleep 60")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, _, err := wire.SSH(ctx, "ssh://far", nil); !errors.Is(err, context.Canceled) ||
			errors.Is(err, wire.ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not installed", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, _, err := wire.SSH(t.Context(), "ssh://far", nil)
		var e *wire.Error
		if !errors.Is(err, wire.ErrUnreachable) || !errors.As(err, &e) || !strings.Contains(e.Hint(), "install") {
			t.Errorf("got %v", err)
		}
	})
}

func TestSSHArgumentsAreOnlyArguments(t *testing.T) {
	target, err := wire.ParseSSHTarget("ssh://me@far:2222")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"-T", "-l", "me", "-p", "2222", "--", "far"}, wire.SSHArgs(target, "-T")); diff != "" {
		t.Error(diff)
	}
}

func FuzzSSHOutput(f *testing.F) {
	f.Add("linerate/1 data-port=7070\n")
	f.Add("linerate/1 data-port=0")
	f.Add("linerate/1 data-port=99999\r\n")
	f.Add("hostname far\nport 22\nhostname second")
	f.Fuzz(func(t *testing.T, line string) {
		if port, ok := wire.ParseGreeting(line); ok && (port < 1 || port > 65535) {
			t.Fatalf("%q yields port %d", line, port)
		}
		for keyword := range wire.ParseSSHConfig([]byte(line)) {
			if keyword == "" {
				t.Fatalf("%q yields an empty keyword", line)
			}
		}
	})
}

func FuzzSSHTarget(f *testing.F) {
	for _, seed := range []string{"ssh://far", "ssh://me@far:22", "ssh://[::1]:22", "ssh://-oX", "ssh://%2doX@far",
		"ssh://a%0ab", "ssh://%25", "ssh://[fe80::1%eth0]:22", "ssh://[fe80::1%25eth0]", "ssh://[::1%25a%25b]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := wire.ParseSSHTarget(text)
		if err != nil {
			return
		}
		args := wire.SSHArgs(target)
		if args[len(args)-2] != "--" || strings.HasPrefix(target.Host, "-") || strings.HasPrefix(target.User, "-") ||
			strings.ContainsAny(target.Host+target.User, " \t\n'\"`$;&|") {
			t.Fatalf("%q gives %q", text, args)
		}
		again, err := wire.ParseSSHTarget(target.String())
		if err != nil || again != target {
			t.Fatalf("%q reads as %+v, which reads back as %+v, %v", text, target, again, err)
		}
	})
}

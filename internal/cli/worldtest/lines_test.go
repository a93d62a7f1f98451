package worldtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/top"
	"github.com/linerate/linerate/internal/wire"
)

// program returns what starts the program itself, with a state directory and a key of its own.
func program(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name, state, key := filepath.Join(t.TempDir(), "linerate"), t.TempDir(), wire.NewKey().String()
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), "LINERATE_KEY="+key, "LINERATE_STATE="+state)
		return c
	}
}

// serving starts a server, and returns its address.
func serving(t *testing.T, linerate func(...string) *exec.Cmd) string {
	t.Helper()
	at, _ := servingProcess(t, linerate)
	return at
}

func servingProcess(t *testing.T, linerate func(...string) *exec.Cmd) (string, *os.Process) {
	t.Helper()
	server := linerate("serve", "--listen", "127.0.0.1:0", "--json")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	var d report.ServeDocument
	if err := json.NewDecoder(out).Decode(&d); err != nil { // it listens when it has printed this
		t.Fatal(err)
	}
	return d.Listen, server.Process
}

// kinds checks whole lines by their schema, with the documents in them, and returns their kinds. A
// last line without its end is not a line.
func kinds(t *testing.T, out []byte) (all []report.LineKind) {
	t.Helper()
	live := report.Described{Name: top.Schema, Value: top.Document{}}
	for line := range bytes.Lines(out) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err := reporttest.Validate(line); err != nil {
			t.Errorf("%v\n%s", err, line)
		}
		var l report.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Document != nil {
			if err := reporttest.Validate(l.Document, live); err != nil {
				t.Error(err)
			}
		}
		all = append(all, l.Kind)
	}
	return all
}

func count(kinds []report.LineKind, of report.LineKind) (n int) {
	for _, k := range kinds {
		if k == of {
			n++
		}
	}
	return n
}

// TestLines checks the lines of commands that end by themselves: the result is the last line.
func TestLines(t *testing.T) {
	t.Parallel()
	linerate := program(t)
	at := serving(t, linerate)
	for _, c := range []struct {
		of   report.LineKind
		most int // lines of that kind, also where a busy machine stretches the window
		args []string
	}{
		{report.LineInterval, 30, []string{"measure", at, "-t", "0.3", "-i", "0.1", "-O", "0", "--test", "ping",
			"--gap", "20ms"}},
		{report.LineReading, 2, []string{"top", "--interval", "100ms", "--count", "2"}},
		{report.LineEvent, 100, []string{"diagnose", at, "--duration", "0.5"}},
	} {
		out, err := linerate(append(c.args, "--json-lines")...).Output()
		got := kinds(t, out)
		if n := count(got, c.of); n < 1 || n > c.most || got[len(got)-1] != report.LineResult ||
			count(got, report.LineResult) != 1 {
			t.Errorf("%s: %v, kinds %q", c.args[0], err, got)
		}
	}
	out, err := linerate("measure", at, "--test", "ping", "-t", "0.1", "-O", "0", "--json-lines", "--no-such").Output()
	if err == nil || len(out) > 0 {
		t.Errorf("a mistake prints %q, %v", out, err)
	}
}

// TestLinesWhenKilled kills a measurement in the middle: what it wrote is whole lines, and no
// result.
func TestLinesWhenKilled(t *testing.T) {
	t.Parallel()
	linerate := program(t)
	c := linerate("measure", serving(t, linerate), "--test", "ping", "-t", "60", "-i", "0.1", "--gap", "50ms",
		"--json-lines")
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	in, got := bufio.NewReader(pipe), []byte(nil)
	for count(kinds(t, got), report.LineInterval) < 2 {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line...)
	}
	_ = c.Process.Kill()
	rest, _ := io.ReadAll(in)
	_ = c.Wait()
	all := kinds(t, append(got, rest...))
	if count(all, report.LineResult) != 0 {
		t.Errorf("kinds %q", all)
	}
}

// TestLinesWhenInterrupted ends commands after their first lines by a signal, or by the death of
// the far host. The last line is the error, the same as on standard error, where a warning of a
// test beside this one may come first.
func TestLinesWhenInterrupted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal os.Signal // nil: the far host is killed
		status int
		args   []string // far stands for the far host
	}{
		{"measure", os.Interrupt, 130, []string{"measure", "far", "--test", "ping", "-t", "60", "-i", "0.1",
			"--gap", "50ms"}},
		{"measure", syscall.SIGTERM, 130, []string{"measure", "far", "-t", "60", "-O", "0", "--test", "rr", "-i", "0.1"}},
		{"measure", nil, 12, []string{"measure", "far", "--test", "ping", "-t", "60", "-i", "0.1", "--gap", "50ms"}},
		{"diagnose", os.Interrupt, 130, []string{"diagnose", "far", "--duration", "60"}},
		{"diagnose", nil, 12, []string{"diagnose", "far", "--duration", "60"}},
		{"top", syscall.SIGTERM, 130, []string{"top", "--interval", "100ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			linerate := program(t)
			at, server := servingProcess(t, linerate)
			for i := range c.args {
				if c.args[i] == "far" {
					c.args[i] = at
				}
			}
			command := linerate(append(c.args, "--json-lines")...)
			pipe, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			command.Stderr = &said
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			in, got := bufio.NewReader(pipe), []byte(nil)
			for range 2 {
				line, err := in.ReadBytes('\n')
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, line...)
			}
			if c.signal == nil {
				_ = server.Kill()
			} else {
				_ = command.Process.Signal(c.signal)
			}
			rest, _ := io.ReadAll(in)
			_ = command.Wait()
			got = append(got, rest...)
			all := kinds(t, got)
			lines := bytes.Split(bytes.TrimSpace(got), []byte("\n"))
			var last report.Line
			if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
				t.Fatal(err)
			}
			if status := command.ProcessState.ExitCode(); status != c.status || last.Kind != report.LineError ||
				count(all, report.LineError) != 1 || !bytes.Equal(said.Bytes(), append(last.Document, '\n')) {
				t.Errorf("status %d, want %d; kinds %q\n%s\n%s", status, c.status, all, last.Document, &said)
			}
		})
	}
}

// TestLinesIntoAClosedPipe closes the pipe after two lines: the measurement ends early, with an
// error in JSON.
func TestLinesIntoAClosedPipe(t *testing.T) {
	t.Parallel()
	linerate := program(t)
	c := linerate("measure", serving(t, linerate), "--test", "ping", "-t", "60", "-i", "0.1", "--gap", "50ms",
		"--json-lines")
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(pipe)
	for range 2 {
		if _, err := in.ReadBytes('\n'); err != nil {
			t.Fatal(err)
		}
	}
	_ = pipe.Close()
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	if err := reporttest.Validate(said.Bytes()); err != nil || !bytes.Contains(said.Bytes(), []byte("broken pipe")) {
		t.Errorf("%v\n%s", err, &said)
	}
}

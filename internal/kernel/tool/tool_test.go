package tool_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/tool"
)

// TestMain lets the test binary stand for the programs that the tests run: every system has it.
func TestMain(m *testing.M) {
	switch os.Getenv("TOOL_TEST") {
	case "echo":
		_, _ = os.Stdout.WriteString(strings.Join(os.Args[1:], "|") + " " + os.Getenv("LC_ALL"))
		os.Exit(0)
	case "fail":
		_, _ = os.Stdout.WriteString("half\n")
		_, _ = os.Stderr.WriteString("no such property\nusage: …\n")
		os.Exit(3)
	case "flood":
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range 5 {
			_, _ = os.Stdout.Write(block)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestSystem(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := tool.System{}
	t.Setenv("TOOL_TEST", "echo")
	out, err := run.Run(t.Context(), self, "a b", "c")
	if string(out) != "a b|c C" || err != nil {
		t.Errorf("echo: %q, %v", out, err)
	}
	t.Setenv("TOOL_TEST", "fail")
	out, err = run.Run(t.Context(), self)
	var exit *tool.ExitError
	if string(out) != "half\n" || !errors.As(err, &exit) || exit.Status != 3 || exit.Stderr != "no such property" {
		t.Errorf("fail: %q, %v", out, err)
	}
	t.Setenv("TOOL_TEST", "flood")
	if _, err := run.Run(t.Context(), self); !errors.Is(err, tool.ErrTooLong) {
		t.Errorf("flood: %v", err)
	}
	if _, err := run.Run(t.Context(), "no-such-program-of-linerate"); !errors.Is(err, tool.ErrNoProgram) {
		t.Errorf("missing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run.Run(ctx, self); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if runtime.GOOS == "linux" {
		t.Setenv("PATH", "/nonexistent")
		t.Setenv("TOOL_TEST", "")
		if out, err := run.Run(t.Context(), "true"); err != nil {
			t.Errorf("a program of /usr/bin without PATH: %q, %v", out, err)
		}
	}
}

// A tape plays answers in their order, failures and absent programs included.
func TestTapePlays(t *testing.T) {
	tape, err := tool.ParseTape([]byte(`# a made-up machine
$ show a
| one
| two
$ show a
> three
$ "two words" "" "x\ty"
$ broken
? 2
! cannot open: Permission denied
| part
$ missing
? absent
`))
	if err != nil {
		t.Fatal(err)
	}
	commands := [][]string{{"show", "a"}, {"show", "a"}, {"show", "a"}, {"two words", "", "x\ty"}, {"broken"}, {"missing"}}
	play := func(r tool.Runner) (said []string) {
		for _, c := range commands {
			out, err := r.Run(t.Context(), c[0], c[1:]...)
			text := string(out)
			if err != nil {
				text += " error: " + err.Error()
			}
			said = append(said, text)
		}
		return said
	}
	want := play(tape)
	if want[0] != "one\ntwo\n" || want[1] != "three" || want[2] != "three" ||
		want[4] != "part\n error: broken: exit status 2: cannot open: Permission denied" {
		t.Errorf("said %q", want)
	}
	if _, err := tape.Run(t.Context(), "show", "b"); !errors.Is(err, tool.ErrNotRecorded) {
		t.Errorf("not recorded: %v", err)
	}
}

func TestTapeRefuses(t *testing.T) {
	for _, text := range []string{"| x\n", "$ \n", "$ a\n? x\n", "$ a\n* x\n"} {
		if _, err := tool.ParseTape([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzTape(f *testing.F) {
	f.Add([]byte("$ a\n| x\n? 1\n! e\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if tape, err := tool.ParseTape(text); err == nil {
			_, _ = tape.Run(t.Context(), "a")
		}
	})
}

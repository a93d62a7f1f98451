package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// onWindows is a value of the real registry.
const onWindows knob.ID = `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpMaxDataRetransmissions`

// The test binary plays three parts: `TEST part writer STATE MODE`, `TEST part guard …`, else the
// test.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "part" {
		err := fmt.Errorf("no part %s", os.Args[2])
		switch os.Args[2] {
		case "writer":
			err = windowsWriter(os.Args[3], os.Args[4])
		case "guard":
			err = windowsGuard(os.Args[3:])
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func windowsOptions(state string) journal.Options {
	return journal.Options{Dir: state, Backend: live.New(), Catalog: knob.Catalogue()}
}

func windowsGuard(args []string) error {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	deadline, err := time.ParseDuration(flags["--deadline"])
	if err != nil {
		return err
	}
	return journal.RunGuard(context.Background(), journal.GuardConfig{Journal: windowsOptions(flags["--state"]),
		Mode: journal.Mode(flags["--mode"]), Session: flags["--session"], For: deadline})
}

func windowsWriter(state, mode string) error {
	o := windowsOptions(state)
	o.Mode = journal.Mode(mode)
	o.Guard = &journal.GuardOptions{Args: []string{"part"}, Handshake: time.Minute}
	j, err := journal.Open(o)
	if err != nil {
		return err
	}
	request := journal.Request{Reason: "a test", For: 3 * time.Second}
	if o.Mode == journal.Lease {
		request.For = 0
	}
	if _, err := j.Apply(context.Background(), request, knob.Setting{Knob: onWindows, Value: "7"}); err != nil {
		return err
	}
	fmt.Println("applied")
	if o.Mode == journal.Lease {
		select {} // until it is killed
	}
	return j.Close()
}

// TestWindowsGuard changes a value of the registry on trial. It comes back at the deadline although
// the writer has ended, and at once when the writer is killed.
func TestWindowsGuard(t *testing.T) {
	backend := live.New()
	before, err := backend.Read(t.Context(), onWindows)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ mode, why string }{
		{string(journal.Deadline), "deadline passed"}, {string(journal.Lease), "writer died"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			state, err := os.MkdirTemp("", "journal") // Wine 8 removes no tree, so that TempDir would fail
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), os.Args[0], "part", "writer", state, c.mode)
			command.Stderr = os.Stderr
			out, err := command.StdoutPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || strings.TrimSpace(line) != "applied" {
				t.Fatalf("writer: %q, %v", line, err)
			}
			if c.mode == string(journal.Lease) {
				if v, err := backend.Read(t.Context(), onWindows); err != nil || v != "7" {
					t.Errorf("%s, %v", v, err)
				}
				if err := command.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			err = command.Wait()
			if c.mode == string(journal.Deadline) && err != nil {
				t.Fatal(err)
			}
			var last []journal.Change
			for range 600 { // a minute; a guard looks at its clock once a second
				if last, err = journal.History(durable.OS(), state); err == nil && len(last) == 1 &&
					last[0].State == journal.Undone {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			log, _ := os.ReadFile(state + `\guard.log`)
			if len(last) != 1 || last[0].State != journal.Undone || !strings.Contains(last[0].Note, c.why) {
				t.Errorf("%+v, %v\n%s", last, err, log)
			}
			if v, err := backend.Read(t.Context(), onWindows); err != nil || v != before {
				t.Errorf("holds %s, before %s, %v\n%s", v, before, err, log)
			}
		})
	}
}

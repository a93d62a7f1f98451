package native_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/native"
	"github.com/linerate/linerate/internal/host/windows"
	"github.com/linerate/linerate/internal/kernel/mib"
	"github.com/linerate/linerate/internal/kernel/registry"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// system is one of the three, over any runner.
type system struct {
	name string
	make func(t *testing.T, run tool.Runner) *native.Host
	good func(t *testing.T) tool.Runner
	knob knob.ID
	v    knob.Value
}

var systems = []system{
	{"freebsd", func(t *testing.T, run tool.Runner) *native.Host {
		return native.FreeBSD(catalogue(t, "freebsd"), mib.ParseDump("a.b: 1\n"), run, durable.NewMem())
	}, func(t *testing.T) tool.Runner { return newBSD(t).played }, "ifconfig:em0/mtu", "9000"},
	{"illumos", func(t *testing.T, run tool.Runner) *native.Host {
		return native.Solaris(catalogue(t, "solaris"), run, durable.NewMem())
	}, func(t *testing.T) tool.Runner { return newSun(t).played }, "dladm:net0/mtu", "9000"},
	{"windows", func(t *testing.T, run tool.Runner) *native.Host {
		return native.Windows(catalogue(t, "windows"), registry.ParseHive(""), run)
	}, func(t *testing.T) tool.Runner { return newPane(t).played }, "adapter:Ethernet/ndis.FlowControl", "0"},
}

// said is a program that gives the same answer to everything.
func said(out string, err error) tool.Runner {
	return &played{run: func(*played, []string) (string, error) { return out, err }}
}

// What a program prints is not believed: nothing, half of it, another language or another form with
// the status of success never reads as a value.
func TestNoAnswerReadsAsValue(t *testing.T) {
	answers := map[string]string{
		"empty": "", "blank": "\r\n", "binary": "\x00\xff\xfe", "a shell's greeting": "Welcome to host1\n",
		"German":  "Empf. Fenster Auto-Tuningstufe          : normal\n",
		"a table": "LINK         PROPERTY        PERM VALUE          DEFAULT        POSSIBLE\nnet0 mtu rw 1500 1500 1500\n",
		"half":    "em0: flags=8843<UP,BROADCAST,RUNN", "half of JSON": `{"ok":true,"rows":[{"Name":"Ethernet","Regi`,
		"another interface": "em1: flags=8843<UP> metric 0 mtu 1500\n", "too many": "rw:1:2:3:4:5:6:7\n",
		"empty values": `{"ok":true,"rows":[{"Name":"Ethernet","RegistryValue":null}]}`, "no value": "rw:::\n",
		"no mtu": "em0: flags=8843<UP> metric 0\n",
	}
	for _, s := range systems {
		for name, out := range answers {
			v, err := s.make(t, said(out, nil)).Read(t.Context(), s.knob)
			if err == nil {
				t.Errorf("%s, %s: reads %q", s.name, name, v)
			}
			var e *knob.Error
			if err != nil && (!errors.As(err, &e) || e.Knob != s.knob) {
				t.Errorf("%s, %s: %v does not name the knob", s.name, name, err)
			}
		}
	}
}

func TestSuccessThatChangedNothing(t *testing.T) {
	for _, s := range systems {
		good := s.good(t)
		stub := &played{run: func(_ *played, argv []string) (string, error) {
			line := strings.Join(argv, " ")
			if strings.Contains(line, " set-") || strings.Contains(line, "Set-Net") || argv[0] == "ifconfig" && argv[1] != "-m" {
				return "", nil
			}
			out, err := good.Run(t.Context(), argv[0], argv[1:]...)
			return string(out), err
		}}
		err := s.make(t, stub).Write(t.Context(), s.knob, s.v)
		// PowerShell always answers: an empty one is no answer at all.
		if !errors.Is(err, native.ErrUnchanged) && !errors.Is(err, windows.ErrFormat) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// Missing programs, refused permissions and dead programs are different answers.
func TestFailuresAreToldApart(t *testing.T) {
	for _, s := range systems {
		_, err := s.make(t, said("", fmt.Errorf("x: %w", tool.ErrNoProgram))).Read(t.Context(), s.knob)
		if !errors.Is(err, knob.ErrNotSupported) {
			t.Errorf("%s without its program: %v", s.name, err)
		}
		denied := said("", failure("x", "x: Permission denied"))
		if s.name == "windows" {
			denied = said(`{"ok":false,"category":"PermissionDenied","code":"Windows System Error 5"}`, nil)
		}
		_, err = s.make(t, denied).Read(t.Context(), s.knob)
		var e *knob.Error
		if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &e) || e.Hint() == "" {
			t.Errorf("%s without permission: %v", s.name, err)
		}
		_, err = s.make(t, said("", fmt.Errorf("x: %w", tool.ErrTooLong))).Read(t.Context(), s.knob)
		if !errors.Is(err, tool.ErrTooLong) {
			t.Errorf("%s with endless output: %v", s.name, err)
		}
	}
}

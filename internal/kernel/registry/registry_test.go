package registry_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/linerate/linerate/internal/kernel/registry"
)

const parameters = `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`

// store is what every registry does with a value that does not exist: it can be set, read, and made
// absent again. The test of the running system uses a name of its own and removes it.
func store(t *testing.T, s registry.Store) {
	t.Helper()
	const name = "LinerateTestValue"
	if _, err := s.Get(parameters, name); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before: %v", err)
	}
	t.Cleanup(func() { _ = s.Delete(parameters, name) })
	for _, v := range []registry.Value{{Kind: registry.Number, Number: 131400}, {Kind: registry.Number, Number: 1<<32 - 1},
		{Kind: registry.Text, Text: `a\b "c" ü`}} {
		if err := s.Set(parameters, name, v); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(parameters, name); got != v || err != nil {
			t.Errorf("%+v, %v; want %+v", got, err, v)
		}
	}
	if err := s.Delete(parameters, name); err != nil {
		t.Error(err)
	}
	for _, err := range []error{s.Delete(parameters, name), s.Set(parameters+`\NoSuchKey`, name,
		registry.Value{Kind: registry.Number})} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v; want not there", err)
		}
	}
	if _, err := s.Get(parameters, name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after: %v", err)
	}
	if there, err := s.Exists(parameters); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if there, err := s.Exists(parameters + `\NoSuchKey`); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if _, err := s.Get(`HKCU\Software`, "x"); !errors.Is(err, registry.ErrKey) {
		t.Errorf("another root: %v", err)
	}
}

const file = `Windows Registry Editor Version 5.00

; as regedit exports it
[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters]
"DataBasePath"=hex(2):25,00,53,00
"Domain"=""
"Hostname"="host\\a"
"TcpTimedWaitDelay"=dword:0000001e

[-HKEY_LOCAL_MACHINE\SYSTEM\Gone]
`

func TestHive(t *testing.T) {
	h := registry.ParseHive(file)
	if v, err := h.Get(`hklm\system\currentcontrolset\services\TCPIP\parameters`, "tcptimedwaitdelay"); v.Number != 30 ||
		err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := h.Get(parameters, "Hostname"); v.Text != `host\a` || err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := h.Get(parameters, "DataBasePath"); v.Kind != registry.Other || err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	store(t, h)
	h.Denied = true
	if err := h.Set(parameters, "x", registry.Value{Kind: registry.Number}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

func FuzzHive(f *testing.F) {
	f.Add(file)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = registry.ParseHive(text).Get(parameters, "Domain")
	})
}

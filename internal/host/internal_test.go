package host

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// TestNotes: missing, not permitted and not supported are different sentences; each is said once;
// what an archive lacks is none.
func TestNotes(t *testing.T) {
	var said notes
	for _, err := range []error{
		&fs.PathError{Op: "read", Path: "/proc/x", Err: fs.ErrNotExist},
		&fs.PathError{Op: "read", Path: "/proc/y", Err: fs.ErrPermission},
		fmt.Errorf("read rings eth0: %w", nl.ErrNotSupported), procfs.ErrFormat, procfs.ErrFormat, nil,
		fmt.Errorf("linerate/links.json: %w", errNotArchived),
	} {
		said.add("this", err)
	}
	want := []string{
		"this: not there: read /proc/x: file does not exist", "this: not permitted: read /proc/y: permission denied",
		"this: not supported: read rings eth0: " + nl.ErrNotSupported.Error(), "this: not readable: unexpected format",
	}
	if runtime.GOOS == "windows" {
		want[1] = said.sentences[1] // the system's own words
	}
	if diff := cmp.Diff(want, said.sentences); diff != "" {
		t.Error(diff)
	}
}

// TestPortableSnapshot: what Go reports on any system, and the warning about the rest.
func TestPortableSnapshot(t *testing.T) {
	s := portableSnapshot(t.Context())
	if s.OS != runtime.GOOS || s.Name == "" || len(s.CPUs) != runtime.NumCPU() || len(s.Interfaces) == 0 {
		t.Errorf("snapshot %+v", s)
	}
	if n := len(s.Warnings); n == 0 || !strings.Contains(s.Warnings[n-1], "only on linux") {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// TestRoutesOfProc: where netlink was not asked, routes come from /proc in the words of the model.
func TestRoutesOfProc(t *testing.T) {
	m := hostfs.NewMemory([]hostfs.Entry{
		{Name: "proc/net/route",
			Content: []byte("eth0\t0000000A\t0100020A\t0003\t0\t0\t0\t000000FF\t1500\t4096\t0\n" +
				"eth0\t00000000\t0100020A\t0003\t0\t0\t0\t00000000\t0\t0\t0\nshort\n")},
		{Name: "proc/net/ipv6_route",
			Content: []byte("00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
				"fe800000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n")},
	})
	s, err := Root{FS: m}.Snapshot(t.Context())
	want := []Route{
		{Destination: "10.0.0.0/8", Gateway: "10.2.0.1", Interface: "eth0", WindowBytes: 4096, AdvMSSBytes: 1460},
		{Destination: "default", Gateway: "10.2.0.1", Interface: "eth0"},
		{Destination: "::/0", Gateway: "fe80::1", Interface: "eth0"},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Routes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The line that is none is reported, and what came before it is kept.
	if !strings.Contains(strings.Join(s.Warnings, "\n"), "routes: not readable") {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// FuzzUevent: a device type is one word of the text, or there is none.
func FuzzUevent(f *testing.F) {
	f.Add("DEVTYPE=bridge\nINTERFACE=br0\n")
	f.Add("DEVTYPE=wlan\n")
	f.Fuzz(func(t *testing.T, in string) {
		if kind := ueventKind(in); !strings.Contains(in, kind) || kind == "wlan" {
			t.Errorf("kind %q", kind)
		}
	})
}

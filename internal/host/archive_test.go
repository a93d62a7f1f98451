package host_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

var update = flag.Bool("update", false, "write the golden files anew")

// unpack reads a text archive: "-- name --" lines start files, "-- name -> target --" is a symbolic
// link, "-- name/ --" an empty directory, and a file called name.hex is the bytes of its
// hexadecimal text, without the ending. What comes before the first file is a comment.
func unpack(t testing.TB, archive string) []hostfs.Entry {
	t.Helper()
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	var entries []hostfs.Entry
	name, content := "", []byte(nil)
	flush := func() {
		if name != "" {
			entries = append(entries, planted(t, name, content))
		}
		content = nil
	}
	for line := range bytes.Lines(text) {
		trimmed := strings.TrimRight(string(line), "\n")
		if strings.HasPrefix(trimmed, "-- ") && strings.HasSuffix(trimmed, " --") {
			flush()
			name = strings.TrimSuffix(strings.TrimPrefix(trimmed, "-- "), " --")
			continue
		}
		content = append(content, line...)
	}
	flush()
	return entries
}

// planted is one entry by the name that a text archive has for it.
func planted(t testing.TB, name string, content []byte) hostfs.Entry {
	t.Helper()
	name, target, isLink := strings.Cut(name, " -> ")
	if isLink {
		return hostfs.Entry{Name: name, Target: target}
	}
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		return hostfs.Entry{Name: dir, Directory: true}
	}
	if plain, ok := strings.CutSuffix(name, ".hex"); ok {
		b, err := hex.DecodeString(strings.Join(strings.Fields(string(content)), ""))
		if err != nil {
			t.Fatal(err)
		}
		name, content = plain, b
	}
	return hostfs.Entry{Name: name, Content: content}
}

// unpacked writes entries below a new directory, as tar would.
func unpacked(t testing.TB, entries []hostfs.Entry) host.Root {
	t.Helper()
	dir := t.TempDir()
	for _, e := range entries {
		to := filepath.Join(dir, filepath.FromSlash(e.Name))
		above := filepath.Dir(to)
		if e.Directory {
			above = to
		}
		err := os.MkdirAll(above, 0o755)
		switch {
		case err != nil || e.Directory:
		case e.Target != "":
			err = os.Symlink(e.Target, to)
		default:
			err = os.WriteFile(to, e.Content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return host.Root{Dir: dir}
}

// inMemory is the same host without a disk.
func inMemory(entries []hostfs.Entry) host.Root { return host.Root{FS: hostfs.NewMemory(entries)} }

// result is what a golden file holds: all that is made of one archive.
type result struct {
	Snapshot *host.Snapshot
	Ceilings []ceiling.Rate
	Counters *host.Counters
}

// TestArchives reads every archived host, from a directory and from memory, and compares everything
// with its golden file: one new kernel or card is one new archive.
func TestArchives(t *testing.T) {
	archives, err := filepath.Glob("testdata/hosts/*.txtar")
	if err != nil || len(archives) < 4 {
		t.Fatalf("archives: %v %v", archives, err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".txtar")
		golden := filepath.Join("testdata", "hosts", name+".golden.json")
		entries := unpack(t, archive)
		t.Run(name, func(t *testing.T) {
			b := everything(t, inMemory(entries))
			if *update {
				if err := os.WriteFile(golden, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(b)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
			if diff := cmp.Diff(string(b), string(everything(t, unpacked(t, entries)))); diff != "" {
				t.Errorf("(-memory +directory):\n%s", diff)
			}
			var back result
			if err := json.Unmarshal(b, &back); err != nil {
				t.Errorf("golden does not decode: %v", err)
			}
		})
	}
}

// everything is all that is made of one host, as JSON.
func everything(t testing.TB, root host.Root) []byte {
	t.Helper()
	var got result
	var err error
	if got.Snapshot, err = root.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	got.Ceilings = ceiling.All(got.Snapshot)
	if got.Counters, err = root.Counters(); err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// FuzzArchive: whatever is in the files of an archive, a Snapshot is made or an error is returned.
func FuzzArchive(f *testing.F) {
	names := []string{
		"linerate/links.json", "linerate/ethtool.json", "linerate/routes.json", "linerate/addresses.json",
		"linerate/qdiscs.json", "linerate/host.json",
		"proc/net/route", "proc/net/snmp", "proc/cpuinfo", "proc/sys/net/ipv4/tcp_rmem", "sys/class/net/eth0/ifindex",
		"sys/class/net/eth0/speed",
		"proc/interrupts", "proc/net/softnet_stat", "proc/net/sockstat", "proc/mounts", "proc/stat",
		"sys/devices/pci0000:00/0000:00:03.0/config",
		"sys/devices/pci0000:00/0000:00:03.0/aer_dev_fatal", "sys/devices/pci0000:00/0000:00:03.0/irq",
		"sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
	}
	f.Add(0, []byte(`[{"index":2,"name":"eth0","mtu_bytes":1500}]`))
	f.Add(1, []byte(`{"eth0":{"rings":{"rx":{"current":1}}}}`))
	f.Add(9, []byte("1 2 3"))
	f.Fuzz(func(t *testing.T, which int, content []byte) {
		root := inMemory([]hostfs.Entry{
			{Name: "proc/sys/kernel/osrelease", Content: []byte("6.1.0\n")},
			{Name: "sys/class/net/eth0/mtu", Content: []byte("1500\n")},
			{Name: "sys/class/net/eth0/device", Target: "../../../devices/pci0000:00/0000:00:03.0"},
			{Name: "sys/bus/pci", Directory: true},
			{Name: "sys/devices/pci0000:00/0000:00:03.0/subsystem", Target: "../../../bus/pci"},
			{Name: "sys/devices/system/cpu/cpu0/cpuidle/state0/name", Content: []byte("C1\n")},
			{Name: names[uint(which)%uint(len(names))], Content: content},
		})
		s, err := root.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ceiling.All(s)
		s.InterfaceTo("192.0.2.1")
		_, _ = root.Counters() // An archive with no counters at all is an error, which is the point here.
	})
}
func TestArchiveStaysInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("stolen\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries := []hostfs.Entry{
		{Name: "proc/sys/kernel/osrelease", Content: []byte("6.1.0\n")},
		{Name: "proc/sys/kernel/hostname", Target: outside},
		{Name: "proc/cpuinfo", Target: "../../../../../../../proc/cpuinfo"},
		{Name: "sys/class/net", Target: "/sys/class/net"},
		{Name: "sys/loop/a", Target: "a"},
	}
	for way, root := range map[string]host.Root{"directory": unpacked(t, entries), "memory": inMemory(entries)} {
		s, err := root.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != "" || len(s.CPUs) != 0 || len(s.Interfaces) != 0 || s.Kernel != "6.1.0" {
			t.Errorf("%s: read outside of the archive: %+v", way, s)
		}
		if len(s.Warnings) == 0 {
			t.Errorf("%s: nothing said", way)
		}
	}
}

func TestNoArchive(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := (host.Root{Dir: dir}).Snapshot(t.Context()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := inMemory(nil).Snapshot(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing in memory: %v", err)
	}
}

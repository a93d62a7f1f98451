package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
)

var update = flag.Bool("update", false, "write the golden files anew")

// hosts returns the fixture hosts by name.
func hosts(t testing.TB) map[string]*Capture {
	t.Helper()
	all, err := fixtures()
	if err != nil {
		t.Fatal(err)
	}
	return maps.Clone(all)
}

var fixtures = sync.OnceValues(func() (map[string]*Capture, error) {
	files, err := filepath.Glob(filepath.Join("testdata", "hosts", "*.capture"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no fixture hosts: %w", err)
	}
	all := make(map[string]*Capture)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := Read(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".capture")] = c
	}
	return all, nil
})

// TestHosts: what is made of each fixture host is what its golden file says.
func TestHosts(t *testing.T) {
	for name, c := range hosts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := c.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Snapshot *host.Snapshot `json:"snapshot"`
				Ceilings []ceiling.Rate `json:"ceilings"`
			}
			got.Snapshot, got.Ceilings = s, ceiling.All(s)
			b := indented(t, got)
			golden := filepath.Join("testdata", "hosts", name+".golden.json")
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
		})
	}
}

func indented(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// TestScrubbedDocument: the document of a capture is that of the host with the same replacements,
// and nothing else is different. It holds for every fixture host and for one on which everything
// that has to be replaced is planted.
func TestScrubbedDocument(t *testing.T) {
	roots := hosts(t)
	roots["planted"] = planted(t)
	for name, c := range roots {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScrubber([keyBytes]byte{1, 2, 3})
			before, err := c.Root().Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			taken, err := take(t.Context(), c.Root(), s)
			if err != nil {
				t.Fatal(err)
			}
			// What is sent is the text.
			back, err := Read(bytes.NewReader(taken.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			after, err := back.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			after.Warnings = fresh(after.Warnings, before.Warnings, s)
			before.Name = s.hostName(before.Name)
			want := s.document(indented(t, before))
			if diff := cmp.Diff(string(sorted(t, want)), string(sorted(t, indented(t, after)))); diff != "" {
				t.Errorf("scrubbed document, document of the capture (-want +got):\n%s", diff)
			}
		})
	}
}

// fresh leaves out of the warnings of a capture those that the live host gave: an archive alone has
// no way to give them.
func fresh(after, before []string, s *scrubber) []string {
	var out []string
	for _, sentence := range after {
		for _, b := range before {
			if s.text(b) == sentence {
				out = append(out, sentence)
				break
			}
		}
	}
	return out
}

// sorted gives a JSON document with its keys in order, so that two of them can be compared as text.
func sorted(t testing.TB, b []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return indented(t, v)
}

// planted is a host that has everything in it that must not leave it.
func planted(t testing.TB) *Capture {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "planted.capture"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// secrets are the private words of planted.capture; none may be in a capture of it.
var secrets = []string{
	"db7", "acme", "alice", "payroll", "Falcon9", "filer", "001b21", "00:1b:21", "aa:bb:cc", "aabbcc", "84.23.7",
	"10.44.3", "2a02:8108", "8108",
	"f412c7d2", "f412C7D2", "0123456789abcdef0123456789abcdef", "SN-4711", "uplink to Bonn", "172.29.11", "192.168.77",
	"5417032C", "2A028108", "0B1D1AC0",
	"hunter2", "s3cret", "0001b2", "CZ123",
}

// TestNothingLeaks: of all that was planted nothing is left, neither in the text nor in what is
// made of it; and what matters for speed is as it was.
func TestNothingLeaks(t *testing.T) {
	c := planted(t)
	s := newScrubber([keyBytes]byte{9})
	// Files that no reader looks at today are scrubbed all the same: one may tomorrow.
	text := string((&Capture{entries: s.scrub(c.entries)}).Bytes())
	for _, secret := range secrets {
		if i := strings.Index(strings.ToLower(text), strings.ToLower(secret)); i >= 0 {
			t.Errorf("%q is in the capture: …%q…", secret, text[max(0, i-60):min(len(text), i+60)])
		}
	}
	for _, kept := range []string{
		"tcp_rmem = 4096\t131072\t33554432", "127.0.0.1/8", "ff02::1", "5.10.0.7", "0x800007", "isolcpus=2-7",
		"rsize=1048576", "vers=4.2", "Xeon",
		"MemTotal:       65800000 kB", "tcp_congestion_control = cubic", "0000:03:00.0", "224.0.0.251", "255.255.255.0",
		"1-1.2.3.4",
		"12:cpuset:/docker/group-", "/kubepods/burstable/group-", `environ == "container=lxc\x00"`, "0::/",
		"version = Linux version 5.10.0.7\n", "[etc/netplan]\nfile-",
	} {
		if !strings.Contains(text, kept) {
			t.Errorf("%q is gone from the capture", kept)
		}
	}
}

// TestAgain: a capture of a capture is the same host.
func TestAgain(t *testing.T) {
	for name, c := range hosts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again, err := Take(t.Context(), c.Root())
			if err != nil {
				t.Fatal(err)
			}
			before, err := c.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			after, err := again.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ceiling.All(before), ceiling.All(after)); diff != "" {
				t.Errorf("ceilings (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(before.Settings, after.Settings); diff != "" {
				t.Errorf("settings (-first +second):\n%s", diff)
			}
			if len(before.Interfaces) != len(after.Interfaces) || len(before.Routes) != len(after.Routes) ||
				len(before.Warnings) != len(after.Warnings) {
				t.Errorf("interfaces, routes, warnings: %d %d %d, then %d %d %d", len(before.Interfaces),
					len(before.Routes), len(before.Warnings),
					len(after.Interfaces), len(after.Routes), len(after.Warnings))
			}
		})
	}
}

// TestTakeSays: what cannot be read is an error that says what.
func TestTakeSays(t *testing.T) {
	_, err := Take(t.Context(), host.Root{Dir: filepath.Join(t.TempDir(), "nowhere")})
	if err == nil || !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "capture: ") {
		t.Errorf("error %v", err)
	}
}

// BenchmarkRead is what inspect --from does with a host of 64 queues and 40 VLANs, but for the
// document.
func BenchmarkRead(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("testdata", "hosts", "bond-40-vlans.capture"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c, err := Read(bytes.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Snapshot(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

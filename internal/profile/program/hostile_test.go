package program

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostile reads files that another user may have made: this program, cut and with bytes changed
// in its headers and tables. Each gives an error or a table, and names only from it.
func TestHostile(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("no /proc: ", err) // another system
	}
	name := filepath.Join(t.TempDir(), "hostile")
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 30 {
		b := append([]byte(nil), self...)
		switch i % 3 {
		case 0:
			b = b[:r.IntN(len(b))]
		case 1:
			for range 20 {
				b[r.IntN(4096)] ^= byte(1 + r.IntN(255)) // headers
			}
		default:
			for range 2000 {
				b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
			}
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(name); err == nil {
			for _, l := range got.loads {
				got.at(l.Off)
				got.at(l.Off + l.Filesz - 1)
			}
		}
	}
	if _, err := read("/dev/zero"); err == nil {
		t.Error("a device was read as a program")
	}
}

// FuzzMaps checks that no text makes the parser of maps fail otherwise than with an error.
func FuzzMaps(f *testing.F) {
	f.Add("00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon\n")
	f.Add("7ffd0-7ffc0 r-xp 0 0:0 0 /x\n")
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := parseMaps(strings.NewReader(text))
		for _, p := range parts {
			if err != nil || p.end <= p.start || p.path[0] != '/' {
				t.Errorf("%+v, %v", p, err)
			}
		}
	})
}

package program_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/profile/program"
)

// TestSelf resolves functions of this program, whose own runtime says where they are.
func TestSelf(t *testing.T) {
	p, err := new(program.Files).Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]any{"strings.Cut": strings.Cut, "bytes.Equal": bytes.Equal,
		"strconv.Quote": strconv.Quote} {
		name, file, ok := p.Resolve(uint64(reflect.ValueOf(f).Pointer()) + 1)
		if !ok || name != want || file != filepath.Base(os.Args[0]) {
			t.Errorf("%q in %q, want %s", name, file, want)
		}
	}
	if name, _, ok := p.Resolve(1); ok {
		t.Errorf("address 1 is %s", name)
	}
	if _, err := new(program.Files).Open(1 << 30); !os.IsNotExist(err) && err == nil {
		t.Errorf("a process that does not exist: %v", err)
	}
}

// TestLibrary resolves the exported functions of a C library in a running program as binutils' nm
// lists them.
func TestLibrary(t *testing.T) {
	testenv.Need(t, testenv.Peers)
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); c.Wait() }()
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // its library is loaded
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^([0-9a-f]+)-\S+ r-xp ([0-9a-f]+) .* (/\S*/libc\S*)$`).FindSubmatch(maps)
	if line == nil {
		t.Fatalf("no libc in\n%s", maps)
	}
	start, _ := strconv.ParseUint(string(line[1]), 16, 64)
	offset, _ := strconv.ParseUint(string(line[2]), 16, 64)
	list, err := exec.Command("nm", "-D", "--defined-only", string(line[3])).Output()
	if err != nil {
		testenv.Missing(t, testenv.Peers, err)
	}
	p, err := new(program.Files).Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[uint64][]string)
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]+) [TW] ([^@\n]+)`).FindAllSubmatch(list, -1) {
		at, _ := strconv.ParseUint(string(m[1]), 16, 64)
		names[at] = append(names[at], string(m[2]))
	}
	wrong := 0
	for at, all := range names {
		// In libc the code has the same offset in the file as in its own addresses.
		got, _, ok := p.Resolve(start - offset + at)
		if ok && !strings.Contains(" "+strings.Join(all, " ")+" ", " "+got+" ") {
			if wrong++; wrong < 4 {
				t.Errorf("%#x is %s, nm has %q", at, got, all)
			}
		}
	}
	if len(names) < 1000 {
		t.Errorf("nm lists %d functions", len(names))
	}
}

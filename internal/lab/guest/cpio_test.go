package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readArchive reads the format as the kernel does (init/initramfs.c). It is written independently,
// from the description of the format.
func readArchive(b []byte) (files []file, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cut off")
		}
	}()
	at := 0
	pad := func() { at += -at & 3 }
	for {
		if string(b[at:at+6]) != "070701" {
			return nil, fmt.Errorf("no magic at %d", at)
		}
		var n [13]int
		for i := range n {
			v, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				return nil, err
			}
			n[i] = int(v)
		}
		mode, size, nameSize := n[1], n[6], n[11]
		at += 110
		name := string(b[at : at+nameSize-1])
		at += nameSize
		pad()
		data := b[at : at+size]
		at += size
		pad()
		if name == endOfArchive {
			if at != len(b) {
				return nil, fmt.Errorf("%d bytes after the end", len(b)-at)
			}
			return files, nil
		}
		f := file{name: name, mode: fs.FileMode(mode & 0o777), data: data}
		switch mode &^ 0o777 {
		case 0o040000:
			f.mode |= fs.ModeDir
		case 0o120000:
			f.mode |= fs.ModeSymlink
		case 0o100000:
		default:
			return nil, fmt.Errorf("%s: mode %o", name, mode)
		}
		files = append(files, f)
	}
}

func TestArchive(t *testing.T) {
	want := []file{
		{name: "dev", mode: fs.ModeDir | 0o755, data: []byte{}},
		{name: "init", mode: 0o755, data: []byte("#!")},
		{name: "lib/four", mode: 0o644, data: []byte("four")},
		{name: "lib/five", mode: 0o600, data: []byte("five!")},
		{name: "empty", mode: 0o644, data: []byte{}},
		{name: "link", mode: fs.ModeSymlink | 0o777, data: []byte("lib/four")},
	}
	var b bytes.Buffer
	if err := writeArchive(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := readArchive(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
}

// The header equals the one in Documentation/driver-api/early-userspace/buffer-format.rst, digit by
// digit.
func TestArchiveHeader(t *testing.T) {
	var b bytes.Buffer
	if err := writeArchive(&b, []file{{name: "init", mode: 0o755, data: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	want := "070701" + "00000001" + "000081ed" + "00000000" + "00000000" + "00000001" + "00000000" + "00000001" +
		strings.Repeat("00000000", 4) + "00000005" + "00000000" + "init\x00" + "\x00" + "x\x00\x00\x00"
	if got := b.String()[:len(want)]; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The error of a failing writer names the file.
func TestArchiveWriterFails(t *testing.T) {
	err := writeArchive(failing{}, []file{{name: "init"}})
	if err == nil || !strings.Contains(err.Error(), "init: no space") {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

func FuzzArchive(f *testing.F) {
	f.Add("init", "content", uint16(0o755))
	f.Fuzz(func(t *testing.T, name, data string, mode uint16) {
		if strings.Contains(name, "\x00") || name == endOfArchive {
			t.Skip("no name of a file")
		}
		want := []file{{name: name, mode: fs.FileMode(mode & 0o777), data: []byte(data)}}
		var b bytes.Buffer
		if err := writeArchive(&b, want); err != nil {
			t.Fatal(err)
		}
		if got, err := readArchive(b.Bytes()); err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(file{})) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	})
}

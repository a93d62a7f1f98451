package roster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/wire"
)

var at = time.Date(2026, 11, 26, 4, 0, 0, 0, time.UTC)

// inMemory returns a file without peers.
func inMemory(t *testing.T) File {
	t.Helper()
	return File{FS: durable.NewMem(), Path: "/serve/peers.json"}
}

// add adds peers, each with a new key.
func add(t *testing.T, f File, names ...string) {
	t.Helper()
	if err := f.Edit(t.Context(), func(peers []Peer) ([]Peer, error) {
		for _, name := range names {
			peers = append(peers, Peer{Name: name, Key: wire.NewKey(), Added: at})
		}
		return peers, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, f File) []Peer {
	t.Helper()
	peers, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	return peers
}

func names(peers []Peer) string {
	var all []string
	for _, p := range peers {
		all = append(all, p.Name)
	}
	return strings.Join(all, " ")
}

func TestFile(t *testing.T) {
	f := inMemory(t)
	if _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	want := []Peer{
		{Name: "hub", Key: wire.NewKey(), Added: at},
		{Name: "lab_2", Key: wire.NewKey(), Added: at, Expires: at.Add(time.Hour),
			Tuning: &knob.Permission{Class: knob.DisturbsBriefLoss, Patterns: []string{"sysctl:net.ipv4.*"}}},
	}
	if err := f.Edit(t.Context(), func([]Peer) ([]Peer, error) { return want, nil }); err != nil {
		t.Fatal(err)
	}
	got := read(t, f)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(wire.Key{})); diff != "" {
		t.Error(diff)
	}
	if got[0].Expired(at.Add(1e6*time.Hour)) || got[1].Expired(at) || !got[1].Expired(at.Add(time.Hour)) {
		t.Error("the end of the keys is wrong")
	}
	if info, err := f.FS.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// An edit that fails, or makes what serve would refuse, changes nothing.
	refused := errors.New("refused")
	for _, change := range []func([]Peer) ([]Peer, error){
		func([]Peer) ([]Peer, error) { return nil, refused },
		func(p []Peer) ([]Peer, error) { return append(p, p[0]), nil },
		func(p []Peer) ([]Peer, error) { return append(p, Peer{Name: "a b", Key: wire.NewKey()}), nil },
	} {
		if err := f.Edit(t.Context(), change); !errors.Is(err, refused) && !errors.Is(err, ErrDamaged) {
			t.Errorf("got %v", err)
		}
	}
	if got := names(read(t, f)); got != "hub lab_2" {
		t.Errorf("left: %s", got)
	}
}

// TestDamagedFiles checks that each mistake in a file is one sentence, which names the place and
// not the key.
func TestDamagedFiles(t *testing.T) {
	const key, other = "HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z", "HHEV-S9H6-89S6-T420-9RK6-RFAV-GW11"
	peer := func(rest string) string {
		return `{"format":"linerate.serve-peers/1","peers":[` + "\n" + rest + "]}"
	}
	for text, want := range map[string]string{
		"":                           "line 1: it ends too early",
		`{"format":`:                 "it ends too early",
		"{\n\n,":                     "line 3: invalid character ','",
		peer("") + "{}":              "more text follows",
		peer("") + "]":               "line 2: more text follows",
		`[]`:                         "cannot unmarshal array",
		`{"peers":[]}`:               `its format is ""`,
		`{"format":"x/2"}`:           `its format is "x/2"`,
		peer(`{"nam":"a"}`):          `unknown field "nam"`,
		peer(`{"name":5}`):           "line 2: ",
		peer(`{"name":"a"}`):         `the key of "a" is not a key`,
		peer(`{"name":"a b"}`):       "want 1 to 64 letters",
		peer(`{"name":"-"}`):         "want 1 to 64 letters",
		peer(`{"name":"\u001b[2J"}`): "want 1 to 64 letters",
		peer(`{"name":"a","key":"` + other + `"}`): `the key of "a" is not a key`,

		peer(`{"name":"a","key":"` + key + `"},{"name":"b","key":"` + strings.ToLower(key) + `"}`):   "same key",
		peer(`{"name":"a","key":"` + key + `"},{"name":"a","key":"` + wire.NewKey().String() + `"}`): "two peers",
		peer(`{"name":"a","key":"` + key + `","allow_tuning":"d9"}`):                                 `allow_tuning of "a"`,
		peer(`{"name":"a","key":"` + key + `","allow_tuning":true}`):                                 "allow_tuning",
		peer(`{"name":"a","key":"` + key + `","expires_time":"tomorrow"}`):                           "tomorrow",
	} {
		_, err := parse([]byte(text))
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\n%v, want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "HHEV")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	f := inMemory(t)
	if err := durable.MkdirAll(f.FS, filepath.Dir(f.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(f.FS, f.Path, make([]byte, maxFileBytes+1), perm); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a large file: %v", err)
	}
}

// TestOtherUsers has files that other users may read, or could have made.
func TestOtherUsers(t *testing.T) {
	dir := t.TempDir()
	f := File{FS: durable.OS(), Path: filepath.Join(dir, "peers.json")}
	add(t, f, "hub")
	refused := func(what, reason string) {
		t.Helper()
		_, err := f.Read()
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: read: %v", what, err)
		}
		if err := f.Edit(t.Context(), func(p []Peer) ([]Peer, error) { return p, nil }); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: edit: %v", what, err)
		}
	}
	set := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o610} {
		set(f.Path, mode)
		refused(mode.String(), "other users may read")
	}
	set(f.Path, 0o600)
	set(dir, 0o777)
	refused("an open directory", "every user can change it")
	set(dir, 0o700)
	if os.Geteuid() == 0 {
		if err := os.Chown(f.Path, 65533, -1); err != nil {
			t.Fatal(err)
		}
		refused("another owner", "belongs to user 65533")
		if err := os.Chown(f.Path, 0, -1); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(read(t, f)); got != "hub" {
		t.Errorf("left: %s", got)
	}
	// A link is not followed, wherever it leads.
	if err := os.Rename(f.Path, f.Path+".elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.Path+".elsewhere", f.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link: %v", err)
	}
}

// TestFullDisk and failing ones: whichever operation of an edit fails, the file has the old peers
// or the new ones, and an edit that reports success has the new ones. The same holds after a power
// failure at any operation.
func TestFullDisk(t *testing.T) {
	key := wire.NewKey()
	change := func(p []Peer) ([]Peer, error) { return append(p, Peer{Name: "new", Key: key}), nil }
	whole := func(fsys durable.FS, path, what string, done bool) {
		t.Helper()
		got := names(read(t, File{FS: fsys, Path: path}))
		if got != "old new" && (done || got != "old") {
			t.Errorf("%s: %q", what, got)
		}
	}
	failures := 0
	for n := 0; ; n++ {
		last := false
		for what, hook := range map[string]func(durable.Op) error{
			"full": durable.FullFrom(n), "EIO": durable.FailAt(n, syscall.EIO),
		} {
			f := inMemory(t)
			add(t, f, "old")
			mem := f.FS.(*durable.Mem)
			faulty := durable.NewFaulty(mem, func(op durable.Op) error {
				whole(mem.CrashClone(0, nil), f.Path, "power failure", false)
				whole(mem.CrashClone(1, nil), f.Path, "power failure with all data", false)
				return hook(op)
			})
			err := File{FS: faulty, Path: f.Path}.Edit(t.Context(), change)
			if err != nil {
				failures++
				if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
					t.Errorf("%s at %d: %v", what, n, err)
				}
			}
			whole(mem, f.Path, what, err == nil)
			whole(mem.CrashClone(0, nil), f.Path, what, err == nil)
			last = last || n >= faulty.Operations()
		}
		if last {
			break
		}
	}
	if failures < 8 {
		t.Errorf("only %d failures", failures)
	}
}

// TestEditsAtOnce has two edits that wait for each other, and one that gives up.
func TestEditsAtOnce(t *testing.T) {
	f := inMemory(t)
	add(t, f)
	var edits sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		edits.Go(func() { add(t, f, name) })
	}
	edits.Wait()
	if got := len(read(t, f)); got != 3 {
		t.Errorf("%d peers", got)
	}
	lock, err := f.FS.Lock(f.Path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Edit(ctx, func(p []Peer) ([]Peer, error) { return p, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestLive follows a file through what happens to it while a serve runs.
func TestLive(t *testing.T) {
	f := inMemory(t)
	var lines []string
	l, err := Follow(f, func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	look := func(what, want, said string) {
		t.Helper()
		lines = nil
		l.Look()
		l.Look() // reports nothing twice
		if got := names(l.Peers()); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if (said == "") != (len(lines) == 0) || len(lines) > 1 || said != "" && !strings.Contains(lines[0], said) {
			t.Errorf("%s: said %q, want %q", what, lines, said)
		}
	}
	look("no file", "", "")
	add(t, f, "hub", "lab")
	look("added", "hub lab", "number of peers: 2")
	hub := read(t, f)[0]
	if p := l.Of(hub.Key); p == nil || p.Name != "hub" {
		t.Errorf("%+v", p)
	}
	if l.Of(wire.NewKey()) != nil {
		t.Error("a new key is known")
	}
	good, err := f.FS.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte, mode fs.FileMode) {
		t.Helper()
		if err := durable.Replace(f.FS, f.Path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(good[:len(good)/2], perm)
	look("damaged", "hub lab", "damaged in line")
	write(good, 0o644)
	look("in other hands", "hub lab", "not safe")
	write(good, perm)
	look("repaired", "hub lab", "number of peers: 2")
	if err := f.Edit(t.Context(), func(p []Peer) ([]Peer, error) { return p[1:], nil }); err != nil {
		t.Fatal(err)
	}
	look("revoked", "lab", "number of peers: 1")
	if l.Of(hub.Key) != nil {
		t.Error("the revoked peer is known")
	}
	if err := f.FS.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	look("removed", "", "number of peers: 0")
	write([]byte("nonsense"), perm)
	if _, err := Follow(f, func(string) {}); !errors.Is(err, ErrDamaged) {
		t.Errorf("follow a damaged file: %v", err)
	}
}

// TestUses writes last uses, as a serve does, with a clock of its own.
func TestUses(t *testing.T) {
	f := inMemory(t)
	add(t, f, "hub", "lab")
	var lines []string
	full := false
	disk := durable.NewFaulty(f.FS, func(op durable.Op) error {
		if full {
			return durable.FullFrom(0)(op)
		}
		return nil
	})
	l, err := Follow(File{FS: disk, Path: f.Path}, func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	now := at
	l.now = func() time.Time { return now }
	hub, lab := &l.Peers()[0], &l.Peers()[1]
	last := func(p *Peer) string {
		t.Helper()
		uses, err := f.Uses()
		if err != nil {
			t.Fatal(err)
		}
		u, used := uses[p.Key.ID()]
		if !used {
			return "never"
		}
		return u.Time.Sub(at).String() + " " + u.From
	}
	step := func(what string, wantHub, wantLab string) {
		t.Helper()
		l.note(noteEvery)
		if h, b := last(hub), last(lab); h != wantHub || b != wantLab {
			t.Errorf("%s: %s, %s", what, h, b)
		}
	}
	step("nothing", "never", "never")
	l.Used(hub, "192.0.2.1")
	step("first", "0s 192.0.2.1", "never")
	now = at.Add(30 * time.Second)
	l.Used(hub, "192.0.2.2")
	step("soon again", "0s 192.0.2.1", "never")
	l.Used(lab, "192.0.2.3")
	step("another's first", "30s 192.0.2.2", "30s 192.0.2.3")
	full, now = true, at.Add(2*time.Minute)
	l.Used(hub, "192.0.2.4")
	step("full disk", "30s 192.0.2.2", "30s 192.0.2.3")
	step("still full", "30s 192.0.2.2", "30s 192.0.2.3")
	if len(lines) != 1 || !strings.Contains(lines[0], "no space left") {
		t.Errorf("said %q", lines)
	}
	full = false
	lock, err := f.FS.Lock(f.Path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	step("an edit is under way", "30s 192.0.2.2", "30s 192.0.2.3")
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	step("room again", "2m0s 192.0.2.4", "30s 192.0.2.3")
	if len(lines) != 1 {
		t.Errorf("said %q", lines)
	}
	// The use of a revoked peer goes, and a damaged file is only for display.
	if err := durable.Replace(f.FS, f.usesPath(), []byte("nonsense"), perm); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Uses(); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if err := f.Edit(t.Context(), func(p []Peer) ([]Peer, error) { return slices.Delete(p, 0, 1), nil }); err != nil {
		t.Fatal(err)
	}
	l.Look()
	now = at.Add(time.Hour)
	l.Used(hub, "192.0.2.5")
	l.Used(lab, "192.0.2.6")
	step("revoked", "never", "1h0m0s 192.0.2.6")
}

// TestExpiredByTheClock checks the end of a key against the clock of Live.
func TestExpiredByTheClock(t *testing.T) {
	l := &Live{now: func() time.Time { return at }}
	if l.Expired(&Peer{}) || l.Expired(&Peer{Expires: at.Add(1)}) || !l.Expired(&Peer{Expires: at}) {
		t.Error("wrong end")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":"linerate.serve-peers/1","peers":[{"name":"a","key":"HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z"}]}`))
	f.Add([]byte(`{"format":"linerate.serve-peers/1","peers":[{"name":"a","key":"x","allow_tuning":"d1,*"}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		peers, err := parse(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := encode(peers)
		if err != nil {
			t.Fatal(err)
		}
		same, err := parse(again)
		if err != nil || len(same) != len(peers) {
			t.Fatalf("%s\n%v", again, err)
		}
	})
}

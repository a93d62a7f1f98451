package record_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
)

// diskLeave is how many bytes the helper leaves free before it appends until that fails, and dies.
const diskLeave = "LINERATE_DISK_LEAVE"

// TestFullDisk fills disks of 64 MB that only a process started for the test sees.
func TestFullDisk(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Long)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), diskHelper+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		testenv.Missing(t, testenv.NetNS, "no private mount: ", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func liveOnSmallDisk(dir string) error {
	if leave := os.Getenv(diskLeave); leave != "" {
		n, err := strconv.Atoi(leave)
		if err != nil {
			return err
		}
		return appendUntilFull(dir, n)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	for _, c := range []struct {
		name string
		run  func(*smallDisk) error
	}{
		{"stops before it is full", stopsBefore},
		{"the system says so", systemSaysSo},
		{"dies in the middle of a write", diesInWrite},
		{"no room to cut a block", noRoomToCut},
	} {
		d := &smallDisk{dir: filepath.Join(dir, "history"), ballast: filepath.Join(dir, "ballast")}
		if err := c.run(d); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if err := errors.Join(d.free(), os.RemoveAll(d.dir)); err != nil {
			return err
		}
		fmt.Println(c.name, "ok")
	}
	return nil
}

type smallDisk struct {
	dir, ballast string
	ss           []*sample.Series
	next         int
}

// fill leaves that many bytes free.
func (d *smallDisk) fill(leave int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(d.dir), &st); err != nil {
		return err
	}
	f, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, max(0, int64(st.Bavail)*st.Bsize-leave)))
	return errors.Join(err, f.Close())
}

func (d *smallDisk) free() error {
	if err := os.Remove(d.ballast); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *smallDisk) append(s *record.Store, seconds int) error {
	for range seconds {
		if d.ss == nil {
			for j := range killSeries {
				d.ss = append(d.ss, series(tested, strconv.Itoa(j)))
			}
		}
		r := &sample.Reading{Time: noon.Add(time.Duration(d.next) * time.Second)}
		for j, one := range d.ss {
			r.Points = append(r.Points, sample.Point{Series: one, Value: valueOf(d.next, j)})
		}
		if err := s.Append(r); err != nil {
			return err
		}
		d.next++
	}
	return nil
}

// is waits for a state: the store recovers with its maintenance.
func is(s *record.Store, want record.DiskState) error {
	for range 200 {
		st := s.Status()
		if st.State == want && !st.Loading {
			return nil
		}
		s.Maintain(time.Now().Add(time.Hour)) // an hour later: no retry has to wait
	}
	st := s.Status()
	return fmt.Errorf("state is %s (%s), want %s", st.State, st.Cause, want)
}

// sees queries the newest second, on disk or in memory.
func (d *smallDisk) sees(s *record.Store) error {
	got, err := s.Vector(context.Background(), `linerate_test_total{series="7"}`,
		noon.Add(time.Duration(d.next-1)*time.Second))
	if err != nil {
		return err
	}
	if len(got) != 1 || got[0].Value != valueOf(d.next-1, 7) {
		return fmt.Errorf("the newest second is %v, want %v", got, valueOf(d.next-1, 7))
	}
	return nil
}

func stopsBefore(d *smallDisk) error {
	s, err := history(d.dir, 4<<20)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := errors.Join(d.append(s, 100), d.fill(3<<20), d.append(s, 900), is(s, record.DiskFull),
		d.sees(s)); err != nil {
		return err
	}
	st := s.Status()
	if st.KeptInMemory != 900*time.Second || st.Lost != 0 || st.Since.IsZero() || st.Cause == "" {
		return fmt.Errorf("status %+v, want 900 s in memory", st)
	}
	if err := verify(s, 0, d.next); err != nil {
		return fmt.Errorf("while it is full: %w", err)
	}
	if err := errors.Join(d.free(), is(s, record.DiskOK)); err != nil {
		return err
	}
	if st := s.Status(); st.KeptInMemory != 0 || !st.Since.IsZero() {
		return fmt.Errorf("status %+v, want nothing in memory", st)
	}
	return errors.Join(d.append(s, 10), verify(s, 0, d.next), s.Close())
}

func systemSaysSo(d *smallDisk) error {
	s, err := history(d.dir, -1)
	if err != nil {
		return err
	}
	defer s.Close()
	// Maintenance would free the reserve and write what waits there.
	wake := s.Rest()
	err = errors.Join(d.append(s, 100), d.fill(50_000), d.append(s, 100), d.sees(s))
	st := s.Status()
	wake()
	if err != nil {
		return err
	}
	if st.State != record.DiskFull || st.KeptInMemory < 50*time.Second || !strings.Contains(st.Cause, "no space left") {
		return fmt.Errorf("status %+v, want a full disk and most of the last 100 s in memory", st)
	}
	if err := errors.Join(d.free(), is(s, record.DiskOK), d.append(s, 10), verify(s, 0, d.next),
		s.Close()); err != nil {
		return err
	}
	if s, err = history(d.dir, -1); err != nil {
		return err
	}
	return errors.Join(verify(s, 0, d.next), s.Close())
}

// diesInWrite has another process append until the disk is full, and die: its log ends in the
// middle of a record.
func diesInWrite(d *smallDisk) error {
	for leave := 0; leave < 60_000; leave += 11_000 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), diskHelper+"="+d.dir, diskLeave+"="+strconv.Itoa(leave))
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("helper: %w: %s", err, out)
		}
		written, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			return err
		}
		s, err := history(d.dir, -1)
		if err != nil {
			return fmt.Errorf("open on the full disk: %w", err)
		}
		d.next = int(s.Status().Newest.Sub(noon)/time.Second) + 1
		if d.next < written {
			return fmt.Errorf("%d bytes left: the history has %d seconds, %d were written", leave, d.next, written)
		}
		if err := errors.Join(verify(s, 0, d.next), d.free(), d.append(s, 20), is(s, record.DiskOK),
			verify(s, 0, d.next), s.Close()); err != nil {
			return fmt.Errorf("%d bytes left: %w", leave, err)
		}
		d.ss = nil
	}
	return nil
}

// appendUntilFull prints how many seconds went to the disk, and ends without closing the history.
func appendUntilFull(dir string, leave int) error {
	s, err := history(dir, -1)
	if err != nil {
		return err
	}
	d := &smallDisk{dir: dir, ballast: filepath.Join(filepath.Dir(dir), "ballast")}
	if newest := s.Status().Newest; !newest.IsZero() {
		d.next = int(newest.Sub(noon)/time.Second) + 1
	}
	if err := errors.Join(d.append(s, 20), is(s, record.DiskOK), d.fill(int64(leave))); err != nil {
		return err
	}
	for range 600 {
		if s.Status().State != record.DiskOK {
			fmt.Println(d.next - 1) // the last waits in memory
			os.Exit(0)
		}
		if err := d.append(s, 1); err != nil {
			return err
		}
	}
	return errors.New("the disk is not full")
}

func noRoomToCut(d *smallDisk) error {
	s, err := history(d.dir, 1<<20)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := errors.Join(d.append(s, 1700), d.fill(10<<20), d.append(s, 150)); err != nil {
		return err
	}
	s.Maintain(time.Now())
	if st := s.Status(); st.State != record.DiskOK {
		return fmt.Errorf("state is %s, want ok: there is room for the log", st.State)
	}
	blocks := func() int {
		found, _ := filepath.Glob(filepath.Join(d.dir, "series", "*", "meta.json"))
		return len(found)
	}
	if n := blocks(); n != 0 {
		return fmt.Errorf("%d blocks were cut on a disk without room for them", n)
	}
	if err := errors.Join(d.free(), verify(s, 0, d.next)); err != nil {
		return err
	}
	s.Maintain(time.Now())
	if n := blocks(); n != 1 {
		return fmt.Errorf("%d blocks, want 1 when there is room again", n)
	}
	return errors.Join(verify(s, 0, d.next), s.Close())
}

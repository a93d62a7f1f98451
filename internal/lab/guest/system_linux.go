package guest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The agent is this program as a unit of the system on a disk.
const (
	agentName = "linerate-guest-agent"
	agentDir  = "/run/linerate-guest"
	agentUnit = `[Unit]
Description=Answer the program that booted this guest

[Service]
Type=exec
ExecStart=@` + agentDir + `/agent ` + agentName + `
`
)

// forDisk lists the modules for mounting the disk. ext4 requests crc32c_generic by name and not by
// dependency.
var forDisk = []string{"virtio_blk", "crc32c_generic", "ext4"}

// systemArguments returns systemd's part of the kernel's command line.
func systemArguments(o Options) string {
	if o.Disk == nil {
		return ""
	}
	return " systemd.getty_auto=no systemd.mask=getty.target systemd.show_status=no" +
		// systemd would take a slow emulator for a unit that hangs. The caller's context bounds the
		// guest.
		" systemd.default_timeout_start_sec=1h systemd.service_watchdogs=no" +
		// A guest does not use these units, and each costs an emulated processor half a second.
		" systemd.mask=systemd-logind.service systemd.mask=polkit.service systemd.mask=dev-hugepages.mount" +
		" systemd.mask=dev-mqueue.mount systemd.mask=sys-kernel-debug.mount systemd.mask=sys-kernel-tracing.mount" +
		" systemd.mask=e2scrub_reap.service systemd.mask=systemd-update-utmp.service" +
		" systemd.mask=kmod-static-nodes.service systemd.mask=modprobe@.service" +
		" systemd.mask=systemd-user-sessions.service"
}

// startSystem mounts the disk, copies the overlay to it, and becomes the first process of the
// system on it. The agent is in /run, so that the disk has only files that an installation would
// have.
func startSystem() error {
	const at = "/disk"
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("/dev/vda", at, "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount disk: %w", err)
	}
	if err := copyTree(overlay, at); err != nil {
		return err
	}
	if err := addAgent("/run", "/init"); err != nil {
		return err
	}
	// systemd would mount these itself, but /run has the agent.
	for _, dir := range []string{"/dev", "/proc", "/sys", "/run"} {
		if err := unix.Mount(dir, at+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	// switch_root(8).
	if err := os.Chdir(at); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the disk to the root: %w", err)
	}
	if err := errors.Join(unix.Chroot("."), os.Chdir("/")); err != nil {
		return err
	}
	return fmt.Errorf("start the system on the disk: %w",
		unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"PATH=" + searchPath}))
}

// addAgent puts the agent, a copy of a program, and its unit into the /run of a system.
func addAgent(run, program string) error {
	dir, units := filepath.Join(run, filepath.Base(agentDir)), filepath.Join(run, "systemd/system")
	wants := filepath.Join(units, "multi-user.target.wants")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(wants, 0o755)); err != nil {
		return err
	}
	return errors.Join(
		copyFile(program, filepath.Join(dir, "agent"), 0o755),
		os.WriteFile(filepath.Join(units, agentName+".service"), []byte(agentUnit), 0o644),
		os.Symlink("../"+agentName+".service", filepath.Join(wants, agentName+".service")))
}

// answer serves requests as the agent. Its first message reports that the system has started the
// agent, not that all units are up.
func answer() error {
	port, err := agentPort()
	if err != nil {
		return err
	}
	defer port.Close()
	var release unix.Utsname
	if err := unix.Uname(&release); err != nil {
		return err
	}
	if err := os.Setenv("PATH", searchPath); err != nil {
		return err
	}
	return converse(port, newTalk(port), message{Ready: unix.ByteSliceToString(release.Release[:])})
}

// agentPort opens the agent's way to the host: in a container a socket, which is not in a guest of
// QEMU.
func agentPort() (io.ReadWriteCloser, error) {
	conn, err := net.Dial("unix", filepath.Join(agentDir, socketName))
	if errors.Is(err, fs.ErrNotExist) {
		return openPort()
	}
	return conn, err
}

// copyTree copies regular files and their directories. A missing tree counts as empty.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return copyFile(name, filepath.Join(to, rel), info.Mode().Perm())
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

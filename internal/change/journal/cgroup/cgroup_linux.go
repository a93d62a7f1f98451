package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// groupPrefix begins the name of a guard's control group.
const groupPrefix = "linerate-guard-"

// Own moves this process into a control group of its own, so that it does not end with the session
// that it watches: `systemctl stop`, KillUserProcesses and cgroup.kill end a whole group at once
// (cgroups(7)). systemd is asked where it runs, because groups are its to give; elsewhere, or when
// it does not answer, the group is made as high up as is permitted. It returns what to do at the
// end, and what was done in words. Without one the guard still has its own session: what it cannot
// survive then is the end of the group.
func Own(name string) (leave func(), told string) {
	leave = func() {}
	before, err := unifiedGroup()
	if err != nil {
		return leave, fmt.Sprintf("shares the control group of its writer: %v", err)
	}
	if before == "/" {
		return leave, "is in the root control group already, which nobody ends"
	}
	var asked error
	if _, err := os.Stat("/run/systemd/system"); err == nil { // sd_booted(3)
		if asked = askSystemd(name, before); asked == nil {
			now, _ := unifiedGroup() // It was read a moment ago.
			return leave, "is in a control group of its own, which systemd gave: " + now
		}
	}
	made, err := makeGroup(name, before)
	if err != nil {
		return leave, fmt.Sprintf("shares the control group %s of its writer: %v", before, errors.Join(asked, err))
	}
	return func() { leaveGroup(made) }, "is in a control group of its own: " + made
}

// unifiedGroup returns the control group of this process in the hierarchy of version 2, seen from
// the root of its cgroup namespace.
func unifiedGroup() (string, error) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return group, nil
		}
	}
	return "", errors.New("no control groups of version 2")
}

// systemdPatience is how long systemd may take to move the guard. It takes some 20 ms; the writer
// waits meanwhile.
const systemdPatience = 2 * time.Second

// askSystemd has this process put into a transient scope, which belongs to no session
// (org.freedesktop.systemd1(5), StartTransientUnit).
func askSystemd(name, before string) error {
	ctx, stop := context.WithTimeout(context.Background(), systemdPatience)
	defer stop()
	unit := groupPrefix + name + ".scope"
	out, err := exec.CommandContext(ctx, "busctl", "call", "--quiet",
		"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
		"StartTransientUnit",
		"ssa(sv)a(sa(sv))", unit, "fail",
		"3", "PIDs", "au", "1", strconv.Itoa(os.Getpid()), "Description", "s", "linerate: takes trial changes back",
		"CollectMode", "s", "inactive-or-failed",
		"0").CombinedOutput()
	if err != nil {
		return fmt.Errorf("ask systemd for a scope: %w: %s", err, bytes.TrimSpace(out))
	}
	// The answer names a job; the move follows.
	for ctx.Err() == nil {
		if now, err := unifiedGroup(); err == nil && now != before {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("ask systemd for a scope: %s did not come up", unit)
}

// makeGroup makes a group beside or above the present one and moves this process there. A group
// below would end with its parent.
func makeGroup(name, before string) (string, error) {
	mount, err := unifiedMount()
	if err != nil {
		return "", err
	}
	parent, tried := "/", error(nil)
	for {
		dir := filepath.Join(mount, parent, groupPrefix+name)
		sweepGroups(filepath.Dir(dir))
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			if err = enterGroup(dir); err == nil {
				return dir, nil
			}
			_ = os.Remove(dir) // It is empty.
		}
		tried = errors.Join(tried, err)
		// The next step down towards the group we are in.
		rest := strings.TrimPrefix(strings.TrimPrefix(before, parent), "/")
		next, _, more := strings.Cut(rest, "/")
		if !more {
			return "", tried
		}
		parent = path.Join(parent, next)
	}
}

// unifiedMount returns where control groups of version 2 are mounted from their root on.
func unifiedMount() (string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		// proc_pid_mountinfo(5): number, parent, device, root, mount point, …, "-", type.
		place, rest, _ := strings.Cut(line, " - ")
		fields := strings.Fields(place)
		if kind, _, _ := strings.Cut(rest, " "); kind == "cgroup2" && len(fields) > 4 && fields[3] == "/" {
			return fields[4], nil
		}
	}
	return "", fmt.Errorf("control groups of version 2 are not mounted: %w", fs.ErrNotExist)
}

func enterGroup(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// sweepGroups removes groups of guards that were killed. The kernel keeps those in which somebody
// is.
func sweepGroups(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // The pattern is well formed.
	for _, dir := range old {
		_ = os.Remove(dir) // EBUSY: in use.
	}
}

// leaveGroup moves this process, which is about to end, out of its group, and removes that. A group
// that stays is swept by the next guard.
func leaveGroup(dir string) {
	if enterGroup(filepath.Dir(dir)) == nil {
		_ = os.Remove(dir)
	}
}

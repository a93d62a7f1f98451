package journal

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

// ownGroup moves this process into a control group of its own, so that the guard outlives the
// session that it watches: `systemctl stop`, KillUserProcesses and cgroup.kill end a whole group at
// once (cgroups(7)). On a host with systemd, which manages the groups, it asks systemd for a
// transient scope (sd_booted(3)). Elsewhere, or when systemd does not answer, it creates a group as
// high in the hierarchy as permissions allow, because a group below the writer's would end with it.
//
// It returns a function to call before the process exits, and a sentence for the log of the guard.
// If every attempt fails, the guard still has a session of its own and survives everything but the
// end of the group. It uses version 2 of control groups only
// (Documentation/admin-guide/cgroup-v2.rst).
func ownGroup(name string) (leave func(), done string) {
	leave = func() {}
	before, err := unifiedGroup()
	if err != nil {
		return leave, fmt.Sprintf("shares the control group of its writer: %v", err)
	}
	if before == "/" {
		return leave, "is in the root control group already, which nothing ends"
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

// askSystemd asks systemd, through busctl(1), to move this process into a transient scope, which
// belongs to no session (org.freedesktop.systemd1(5), StartTransientUnit).
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
	// The answer names a job; systemd moves the process later.
	for ctx.Err() == nil {
		if now, err := unifiedGroup(); err == nil && now != before {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("ask systemd for a scope: %s did not come up", unit)
}

// makeGroup creates a group beside or above the present one and moves this process there. A group
// below the present one would end with its parent.
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

// unifiedMount returns where the root of the control groups of version 2 is mounted.
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

// sweepGroups removes groups of guards that were killed. The kernel refuses to remove a group that
// has processes.
func sweepGroups(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // The pattern is well formed.
	for _, dir := range old {
		_ = os.Remove(dir) // EBUSY: in use.
	}
}

// leaveGroup moves this process, which is about to exit, out of its group and removes the group.
// The next guard removes a group that stays.
func leaveGroup(dir string) {
	if enterGroup(filepath.Dir(dir)) == nil {
		_ = os.Remove(dir)
	}
}

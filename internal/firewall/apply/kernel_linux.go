package apply

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/kernel/nl/nft"
)

const (
	// lockPatience is how long another change of the rules may take.
	lockPatience = time.Minute
	// longestRun bounds one program. Ten thousand rules take nft some seconds of CPU time.
	longestRun = 2 * time.Minute
)

// keeper holds the locks of the rules of a network namespace.
type keeper struct {
	locks    []*os.File
	patience time.Duration // for each of them
}

// errHeld reports a lock that another process keeps for longer than a change takes.
var errHeld = errors.New("another process changes them")

// hold takes the lock of the namespace of the calling thread, and that of iptables-legacy as well
// if legacy: its programs read a table and put another in its place, so no other process may come
// between.
//
// Every user of the namespace can take the first lock, and only root the second. So the first one
// keeps no rules in force: hold goes on without it, and the number of the ruleset still shows what
// another process changes.
func hold(ctx context.Context, legacy bool) (*keeper, error) {
	return holdWithin(ctx, lockPatience, legacy)
}

func holdWithin(ctx context.Context, patience time.Duration, legacy bool) (*keeper, error) {
	k := &keeper{patience: patience}
	err := k.take(ctx, "/proc/thread-self/ns/net", 0)
	if errors.Is(err, errHeld) && ctx.Err() == nil {
		err = nil
	}
	if err == nil && legacy {
		err = k.take(ctx, cmp.Or(os.Getenv(lockVariable), "/run/xtables.lock"), os.O_CREATE)
	}
	if err != nil {
		k.release()
		return nil, fmt.Errorf("lock the rules: %w", err)
	}
	return k, nil
}

// lockVariable names the file that iptables-legacy locks (since 1.8.0).
const lockVariable = "XTABLES_LOCKFILE"

func (k *keeper) take(ctx context.Context, path string, flags int) error {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0o600)
	if err != nil {
		return err
	}
	k.locks = append(k.locks, f)
	for until := time.Now().Add(k.patience); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case time.Now().After(until) || ctx.Err() != nil:
			return fmt.Errorf("%w: %w", errHeld, errors.Join(err, ctx.Err()))
		}
	}
}

func (k *keeper) release() {
	for _, f := range k.locks {
		_ = f.Close() // nothing was written
	}
}

// run runs a program, which holds the lock as long as it lives. It gets a group of its own, so that
// no key at the terminal ends it half-way.
func (k *keeper) run(ctx context.Context, in string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin",
		lockVariable+"=/proc/self/status") // a file of its own: the keeper holds the real one
	cmd.Stdin = strings.NewReader(in)
	cmd.ExtraFiles = k.locks
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("run %s: %w: %w", name, errors.ErrUnsupported, err)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("run %s: %w", name, ctx.Err())
	case strings.Contains(said, "Operation not permitted"), strings.Contains(said, "Permission denied"):
		return nil, fmt.Errorf("run %s: %w: %s", name, fs.ErrPermission, said)
	case strings.Contains(said, "No such file or directory") && len(args) > 0 && args[0] == "-j":
		return nil, fmt.Errorf("run %s: %w: %s", name, fs.ErrNotExist, said)
	}
	return nil, fmt.Errorf("run %s: %w: %.300s", name, err, said)
}

// load runs one transaction.
func (k *keeper) load(ctx context.Context, program ruleset.Program, family, text string) error {
	name, args := "nft", []string{"-f", "-"}
	if xtables(program) {
		name, args = read.XTables(program, family, "restore"), []string{"--noflush", "-c"}
	}
	_, err := k.run(ctx, text, name, args...)
	return err
}

// table reads a table. Rules of iptables-legacy have their positions as handles.
func (k *keeper) table(ctx context.Context, program ruleset.Program, family, name string) (*ruleset.Table, error) {
	var handles *ruleset.Table
	if program != ruleset.IPTablesLegacy {
		var err error
		if handles, err = k.listed(ctx, family, name); err != nil || program == ruleset.NFT {
			return handles, err
		}
	}
	out, err := k.run(ctx, "", read.XTables(program, family, "save"), "-c", "-t", name)
	if err != nil {
		return nil, err
	}
	r, err := read.IPTables(bytes.NewReader(out), nil)
	if err != nil {
		return nil, err
	}
	t := r.Table(family, name)
	if t == nil || r.Program != program {
		return nil, fmt.Errorf("table %s %s of %s: %w", family, name, program, fs.ErrNotExist)
	}
	for _, c := range t.Chains {
		var same *ruleset.Chain
		if handles != nil {
			same = handles.Chain(c.Name)
			if len(c.Rules) > 0 && (same == nil || len(same.Rules) != len(c.Rules)) {
				return nil, fmt.Errorf("chain %s of table %s %s: iptables-nft and nft print different rules", c.Name, family, name)
			}
		}
		for i, rule := range c.Rules {
			if rule.Handle = uint64(i + 1); same != nil {
				rule.Handle = same.Rules[i].Handle
			}
		}
	}
	return t, nil
}

// listed reads a table with nft.
func (k *keeper) listed(ctx context.Context, family, name string) (*ruleset.Table, error) {
	out, err := k.run(ctx, "", "nft", "-j", "list", "table", family, name)
	if err != nil {
		return nil, err
	}
	r, err := read.NFT(bytes.NewReader(out))
	if err != nil {
		return nil, err
	}
	t := r.Table(family, name)
	if t == nil {
		return nil, fmt.Errorf("table %s %s: %w", family, name, fs.ErrNotExist)
	}
	return t, nil
}

// generation returns the number of the ruleset; always 0 for iptables-legacy, which has none and
// whose lock is held instead.
func generation(program ruleset.Program) (uint32, error) {
	if program == ruleset.IPTablesLegacy {
		return 0, nil
	}
	return nft.Generation()
}

// settle waits until no packet is among rules that were put out of force before.
func settle() error {
	const global = 1 // MEMBARRIER_CMD_GLOBAL: synchronize_rcu (Linux 4.3)
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); errno != 0 {
		// A kernel without ticks on some CPUs has no such command. A packet is among the rules for
		// microseconds.
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

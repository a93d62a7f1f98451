package apply

import (
	"bytes"
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
	// lockPatience is how long another change of the rules may take. Any process of the namespace can
	// hold the lock, so no wait is longer.
	lockPatience = time.Minute
	// longestRun bounds one program. Ten thousand rules take nft some seconds of CPU time.
	longestRun = 2 * time.Minute
)

// keeper holds the lock of the rules of a network namespace.
type keeper struct{ lock *os.File }

// hold takes the lock of the namespace of the calling thread.
func hold(ctx context.Context) (*keeper, error) {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("lock the rules: %w", err)
	}
	for until := time.Now().Add(lockPatience); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return &keeper{f}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(until) || ctx.Err() != nil {
			_ = f.Close() // nothing was written
			return nil, fmt.Errorf("lock the rules: another process changes them: %w", errors.Join(err, ctx.Err()))
		}
		time.Sleep(time.Millisecond)
	}
}

func (k *keeper) release() { _ = k.lock.Close() } // nothing was written

// run runs a program, which holds the lock as long as it lives. It gets a group of its own, so that
// no key at the terminal ends it half-way.
func (k *keeper) run(ctx context.Context, in string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.Stdin = strings.NewReader(in)
	cmd.ExtraFiles = []*os.File{k.lock}
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
func (k *keeper) load(ctx context.Context, text string) error {
	_, err := k.run(ctx, text, "nft", "-f", "-")
	return err
}

// table reads a table.
func (k *keeper) table(ctx context.Context, family, name string) (*ruleset.Table, error) {
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

func generation() (uint32, error) { return nft.Generation() }

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

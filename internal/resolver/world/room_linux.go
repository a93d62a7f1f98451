package world

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/change/nameserver"
)

// Room is a closed world with one recursor, for trials: all servers of the leaf are sound and fast,
// so that the recursor is what limits it.
type Room struct {
	net  network
	r    *running
	kind Recursor
	file string
	// watch kills what runs in the room when this process ends in any way.
	watch io.Closer
}

// Open makes the room in the namespace of the caller, which has the world's addresses; see [Enter].
// The recursor runs from dir with lines of its configuration beside the base, and BIND with a
// number of workers; 0: one for each CPU. The caller closes it.
func Open(ctx context.Context, kind Recursor, dir string, options []string, workers int) (*Room, error) {
	room := &Room{kind: kind, file: config(kind, dir)}
	_, servers := zones(recordSeconds, recordSeconds)
	if err := room.net.serve(sound(servers)); err != nil {
		room.net.close()
		return nil, err
	}
	var err error
	if room.watch, err = watchDirectory(dir); err != nil {
		room.net.close()
		return nil, err
	}
	if workers == 0 {
		workers = runtime.NumCPU()
	}
	if room.r, err = start(ctx, kind, dir, options, workers); err == nil {
		err = room.r.await(ctx)
	}
	if err != nil {
		room.Close()
		return nil, err
	}
	return room, nil
}

// sound leaves out what is slow, lossy or lame.
func sound(servers []authority) []authority {
	kept := slices.DeleteFunc(slices.Clone(servers), func(a authority) bool { return a.lame })
	for i := range kept {
		kept[i].delay, kept[i].loss = 0, 0
		z := kept[i].zone
		maps.DeleteFunc(z.servers, func(_ string, at netip.Addr) bool {
			return slices.ContainsFunc(servers, func(a authority) bool { return a.lame && a.address == at })
		})
	}
	return kept
}

// Config is the path of the recursor's configuration.
func (r *Room) Config() string { return r.file }

// Server is where the recursor answers.
func (r *Room) Server() netip.AddrPort { return netip.AddrPortFrom(recursorAt, 53) }

// Close ends the recursor, also one that a trial has restarted, and the servers.
func (r *Room) Close() {
	if r.r != nil {
		r.r.stop()
	}
	// A shell may be about to start it again.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := nameserver.Find(r.kind.Kind(), r.file)
		if err != nil {
			break
		}
		_ = syscall.Kill(s.PID, syscall.SIGKILL) // it may have ended since
	}
	r.net.close()
	_ = r.watch.Close() // ends the shell, which finds nothing left
}

// watchDirectory starts a shell that waits until the returned pipe breaks, and then kills every
// process whose command line names the directory: a server that a trial has restarted is no child
// of this process.
func watchDirectory(dir string) (io.Closer, error) {
	const script = `read -r x
for n in 1 2 3; do # a process has no command line for a moment when it starts another program
	for p in /proc/[0-9]*; do
		[ "$p" = "/proc/$$" ] || ! tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -qF "$DIR" || kill -KILL "${p#/proc/}"
	done
	sleep 0.3
done`
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is not for it
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make closed world: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make closed world: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it ends when the pipe breaks
	return in, nil
}

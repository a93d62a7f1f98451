package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Addresses of the two hosts, from the range for benchmarks (RFC 2544, 198.18.0.0/15), which no
// real network uses.
const (
	nearIP = "198.18.0.1"
	farIP  = "198.18.0.2"

	network = "198.18.0.0/30"
)

// world is two network namespaces joined by a veth pair.
type world struct {
	near, far       string // names of the namespaces
	nearCPU, farCPU string
	servers         []*exec.Cmd
	spent           time.Duration // CPU time of the programs that have ended on the near host
	patience        time.Duration // the longest wait before a round for a quiet machine
}

// newWorld makes the namespaces, named after this process so that two benches do not meet.
func newWorld(ctx context.Context, nearCPU, farCPU string) (*world, error) {
	w := &world{
		near: fmt.Sprintf("lrbench-%d-near", os.Getpid()), far: fmt.Sprintf("lrbench-%d-far", os.Getpid()),
		nearCPU: nearCPU, farCPU: farCPU,
	}
	for _, line := range []string{
		"netns add " + w.near,
		"netns add " + w.far,
		"-n " + w.near + " link add veth0 type veth peer name veth0 netns " + w.far,
		"-n " + w.near + " link set lo up",
		"-n " + w.far + " link set lo up",
		"-n " + w.near + " addr add " + nearIP + "/30 dev veth0",
		"-n " + w.far + " addr add " + farIP + "/30 dev veth0",
		"-n " + w.near + " link set veth0 up",
		"-n " + w.far + " link set veth0 up",
	} {
		if err := ip(ctx, line); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func ip(ctx context.Context, line string) error {
	out, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, bytes.TrimSpace(out))
	}
	return nil
}

// congestion makes a congestion control that of every connection between the two hosts. The route
// carries it, because the sysctl of a network namespace takes only what the whole machine allows
// (tcp_allowed_congestion_control), and no bench may widen that. Connections that a server accepts
// from then on have it too (tcp_ca_openreq_child, net/ipv4/tcp_minisocks.c).
func (w *world) congestion(ctx context.Context, name string) error {
	for ns, source := range map[string]string{w.near: nearIP, w.far: farIP} {
		if err := ip(ctx, "-n "+ns+" route replace "+network+" dev veth0 proto kernel scope link src "+source+
			" congctl "+name); err != nil {
			return fmt.Errorf("congestion control %s: %w", name, err)
		}
	}
	return nil
}

// close ends the servers and removes the namespaces.
func (w *world) close() {
	for _, s := range w.servers {
		_ = s.Process.Kill() // fails if it has ended
		_ = s.Wait()         // the error is the kill
	}
	// With a context of its own: an interrupted run must also remove its namespaces.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = ip(ctx, "netns del "+w.near) // fails if it was never made
	_ = ip(ctx, "netns del "+w.far)
}

// command returns a program on one host, on that host's CPU.
func (w *world) command(ctx context.Context, far bool, args ...string) *exec.Cmd {
	ns, cpu := w.near, w.nearCPU
	if far {
		ns, cpu = w.far, w.farCPU
	}
	c := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", ns, "taskset", "-c", cpu}, args...)...)
	c.WaitDelay = 2 * time.Second
	return c
}

// serve starts a server on the far host; it lives as long as the world.
func (w *world) serve(ctx context.Context, args ...string) error {
	c := w.command(ctx, true, args...)
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", args[0], err)
	}
	w.servers = append(w.servers, c)
	return nil
}

// run runs a program on the near host to its end and returns its standard output.
func (w *world) run(ctx context.Context, args ...string) ([]byte, error) {
	c := w.command(ctx, false, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState != nil {
		w.spent += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err,
			lastLine(append(errs.Bytes(), out.Bytes()...)))
	}
	return out.Bytes(), nil
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

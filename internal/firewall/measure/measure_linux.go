package measure

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/sys"
)

const (
	// batch is how many datagrams one system call sends. It takes 30 µs to some milliseconds, so most
	// batches are over before another program interrupts them.
	batch = 32
	// warming is how many go before each batch: the first datagrams find the caches full of other
	// cases.
	warming = 16
	// payload is what each datagram carries, in bytes.
	payload = 18
	// longestLoad bounds one program that loads rules.
	longestLoad = 30 * time.Second
)

// world is one network namespace with rules, and the socket that keeps it.
type world struct {
	space       *os.File
	sender      int
	outbox      *sys.Outbox
	nanoseconds []float64 // per datagram, for each batch
}

func (w *world) close() {
	if w.sender >= 0 {
		_ = sys.Close(w.sender) // it is of no use any more
	}
	_ = w.space.Close() // the same
}

// Run measures the cases. It needs root, and leaves nothing behind.
func Run(ctx context.Context, cases []Case, o Options) (results []Result, err error) {
	done := make(chan struct{})
	work := func() {
		defer close(done)
		results, err = run(ctx, cases, o)
	}
	go func() {
		// The thread leaves its namespace for good, and ends with the goroutine. The first thread of a
		// process does not end, and /proc/self shows its namespace.
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			work()
			return
		}
		go func() {
			runtime.LockOSThread()
			work()
		}()
		<-done
		runtime.UnlockOSThread()
	}()
	<-done
	return results, err
}

func run(ctx context.Context, cases []Case, o Options) ([]Result, error) {
	worlds := make([]*world, 0, len(cases))
	defer func() {
		for _, w := range worlds {
			w.close()
		}
	}()
	for _, c := range cases {
		w, err := furnish(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", c.Name, err)
		}
		worlds = append(worlds, w)
	}
	id, begin := sys.ThreadID(), sys.Monotonic()
	for round := 0; round < o.Least || sys.Monotonic()-begin < o.Span; round++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, w := range worlds {
			spent, err := w.send(id)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", cases[i].Name, err)
			}
			w.nanoseconds = append(w.nanoseconds, spent)
		}
	}
	results := make([]Result, len(worlds))
	for i, w := range worlds {
		results[i] = Result{Name: cases[i].Name, Nanoseconds: low(w.nanoseconds), Batches: len(w.nanoseconds)}
		if !o.Read || len(cases[i].Rules) == 0 {
			continue
		}
		if err := unix.Setns(int(w.space.Fd()), unix.CLONE_NEWNET); err != nil {
			return nil, fmt.Errorf("measure %s: enter namespace: %w", cases[i].Name, err)
		}
		var err error
		if results[i].Rules, err = read.Live(ctx); err != nil {
			return nil, fmt.Errorf("measure %s: %w", cases[i].Name, err)
		}
	}
	return results, nil
}

// furnish takes the thread into a new namespace and loads the rules of a case there.
func furnish(ctx context.Context, c Case) (_ *world, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	w := &world{sender: -1, outbox: sys.NewOutbox(batch)}
	if w.space, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := loopback(); err != nil {
		return nil, err
	}
	for _, r := range c.Rules {
		if err := Load(ctx, r); err != nil {
			return nil, err
		}
	}
	to := c.To
	if !to.IsValid() {
		to = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, 1, 1}), 9)
	}
	// The addresses of the loopback need no route and no neighbour.
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	if w.sender, err = sys.OpenDatagram(from, to, sys.DatagramOptions{}); err != nil {
		return nil, err
	}
	data := make([]byte, payload)
	for i := range batch {
		w.outbox.Set(i, data, 0)
	}
	return w, nil
}

// loopback brings the loopback of the thread's namespace up, and drops what is sent on it.
func loopback() error {
	links, err := nl.Dial()
	if err != nil {
		return err
	}
	defer links.Close() // it has nothing unwritten
	if err := links.SetUp("lo"); err != nil {
		return err
	}
	return links.ReplaceQdisc("lo", "blackhole")
}

// send sends a batch and returns the CPU time of each datagram in nanoseconds.
func (w *world) send(thread int) (float64, error) {
	if err := w.datagrams(warming); err != nil {
		return 0, err
	}
	before, ok := sys.ThreadTime(thread)
	if !ok {
		return 0, errors.New("read thread clock: not supported")
	}
	if err := w.datagrams(batch); err != nil {
		return 0, err
	}
	after, _ := sys.ThreadTime(thread)
	return float64(after-before) / batch, nil
}

func (w *world) datagrams(left int) error {
	for left > 0 {
		n, err := w.outbox.Send(w.sender, left)
		if err != nil {
			return fmt.Errorf("send datagrams: %w", err)
		}
		left -= n
	}
	return nil
}

// restorer returns the program that loads rules, with its arguments.
func restorer(p ruleset.Program) (string, []string) {
	switch p {
	case ruleset.IPTablesLegacy:
		return "iptables-legacy-restore", nil
	case ruleset.IPTablesNFT:
		return "iptables-nft-restore", nil
	}
	return "nft", []string{"-f", "-"}
}

// Load loads rules into the namespace of the calling thread.
func Load(ctx context.Context, r Rules) error {
	ctx, cancel := context.WithTimeout(ctx, longestLoad)
	defer cancel()
	program, args := restorer(r.Program)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(r.Text)
	// The namespace has no other user, and the lock of all namespaces may be held for long.
	cmd.Env = append(os.Environ(), "XTABLES_LOCKFILE=/proc/self/status")
	if out, err := cmd.CombinedOutput(); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("load rules with %s: %w: %s", program, err, said)
	}
	return nil
}

// able reports whether a case can be measured without a program that is missing and without making
// the kernel load a module.
func able(c Case) bool {
	for _, r := range c.Rules {
		program, _ := restorer(r.Program)
		if _, err := exec.LookPath(program); err != nil {
			return false
		}
	}
	if _, err := os.Stat("/proc/modules"); err != nil {
		return true // a kernel without modules
	}
	for _, m := range c.Needs {
		if _, err := os.Stat("/sys/module/" + m); err != nil {
			return false
		}
	}
	return true
}

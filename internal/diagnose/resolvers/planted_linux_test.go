package resolvers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/standstill"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/resolvers"
	"github.com/linerate/linerate/internal/resolver/load"
	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
	"github.com/linerate/linerate/internal/resolver/server"
	"github.com/linerate/linerate/internal/resolver/world"
)

// serverAt is where the server under test answers.
var serverAt = netip.MustParseAddrPort("127.0.0.2:53")

// plant is a real server with one fault, or none.
type plant struct {
	fault   string
	kind    server.Kind
	options []string // of its configuration
	workers int      // 0: two
	leaves  [2]leaf
	model   names.Model
	load    load.Options
	hold    int // idle TCP connections
	want    evidence.Code
}

// The loads: few names that the cache has, many names, and names that no cache has. Their rates
// are low, so that only a planted fault holds the server, also on a busy machine.
var (
	popular = names.Model{Domain: "bench.test", Population: 50, HitRatio: 1}
	wide    = names.Model{Domain: "bench.test", Population: 20_000, HitRatio: 1}
	fresh   = names.Model{Domain: "bench.test", Population: 1, HitRatio: 0.01}

	gentle = load.Options{Rate: 200}
	full   = load.Options{Mode: load.Closed, Outstanding: 40}
	burst  = load.Options{Mode: load.Closed, Outstanding: 1000}
	many   = load.Options{Rate: 150}
	crowd  = load.Options{Mode: load.Closed, Outstanding: 200}
	flood  = load.Options{Rate: 150_000, Workers: 2} // more than one thread can answer
)

var (
	slow  = [2]leaf{{delay: 400 * time.Millisecond}, {delay: 400 * time.Millisecond}}
	lossy = [2]leaf{{loss: 0.5}, {loss: 0.5}}
	lame  = [2]leaf{{lame: true}, {}}
	trunc = [2]leaf{{truncate: true}, {truncate: true}}
)

// plants are the faults, a row for each server that can have it, and sound servers.
func plants() []plant {
	return []plant{
		{"none", server.BIND, nil, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverNothingToTune},
		{"cache of 2 MB", server.BIND, []string{"max-cache-size 2M;"}, 0, [2]leaf{}, wide, full, 0,
			evidence.ResolverCacheTooSmall},
		{"20 recursive clients", server.BIND, []string{"recursive-clients 20;"}, 0, [2]leaf{{delay: 60 * time.Millisecond},
			{delay: 60 * time.Millisecond}}, fresh, crowd, 0, evidence.ResolverRecursiveClients},
		{"receive buffer of 4 kB", server.BIND, []string{"udp-receive-buffer 4096;"}, 0, [2]leaf{}, popular, burst, 0,
			evidence.ResolverUDPDrops},
		{"one worker", server.BIND, nil, 1, [2]leaf{}, popular, flood, 0, evidence.ResolverSingleWorker},
		// On two CPUs, of which the load itself takes a part.
		{"none, flooded", server.BIND, nil, runtime.NumCPU(), [2]leaf{}, popular, flood, 0, evidence.ResolverUDPDrops},
		{"servers 400 ms away", server.BIND, nil, 0, slow, fresh, many, 0, evidence.ResolverUpstreamSlow},
		{"servers that lose half", server.BIND, nil, 0, lossy, fresh, many, 0, evidence.ResolverUpstreamSlow},
		{"a lame server", server.BIND, nil, 0, lame, fresh, many, 0, evidence.ResolverLameUpstream},
		{"servers that truncate", server.BIND, nil, 0, trunc, fresh, many, 0, evidence.ResolverTCPBound},
		{"5 places for TCP", server.BIND, []string{"tcp-clients 5;"}, 0, [2]leaf{}, popular, gentle, 12,
			evidence.ResolverTCPBound},
		{"query log", server.BIND, []string{"querylog yes;"}, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverLogCost},

		{"none", server.Unbound, nil, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverNothingToTune},
		{"caches of 100 kB", server.Unbound, []string{"msg-cache-size: 100k", "rrset-cache-size: 100k"}, 0, [2]leaf{}, wide,
			full, 0, evidence.ResolverCacheTooSmall},
		{"8 queries a thread", server.Unbound, []string{"num-queries-per-thread: 8", "jostle-timeout: 10"}, 0,
			[2]leaf{{delay: 60 * time.Millisecond}, {delay: 60 * time.Millisecond}}, fresh, crowd, 0,
			evidence.ResolverRecursiveClients},
		{"receive buffer of 4 kB", server.Unbound, []string{"so-rcvbuf: 4096"}, 0, [2]leaf{}, popular, burst, 0,
			evidence.ResolverUDPDrops},
		{"one thread", server.Unbound, nil, 1, [2]leaf{}, popular, flood, 0, evidence.ResolverSingleWorker},
		{"servers 400 ms away", server.Unbound, nil, 0, slow, fresh, many, 0, evidence.ResolverUpstreamSlow},
		{"query log", server.Unbound, []string{"log-queries: yes"}, 0, [2]leaf{}, popular, gentle, 0,
			evidence.ResolverLogCost},

		{"none", server.Knot, nil, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverNothingToTune},
		{"cache of 128 kB", server.Knot, []string{"cache.size = 128*kB"}, 0, [2]leaf{}, wide, full, 0,
			evidence.ResolverCacheTooSmall},
		{"servers 400 ms away", server.Knot, nil, 0, slow, fresh, many, 0, evidence.ResolverUpstreamSlow},
		{"servers that truncate", server.Knot, nil, 0, trunc, fresh, many, 0, evidence.ResolverTCPBound},
		{"one process", server.Knot, nil, 1, [2]leaf{}, popular, flood, 0, evidence.ResolverSingleWorker},
		{"debug log", server.Knot, []string{"log_level('debug')"}, 0, [2]leaf{}, popular, gentle, 0,
			evidence.ResolverLogCost},

		{"none", server.PowerDNS, nil, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverNothingToTune},
		{"500 cache entries", server.PowerDNS, []string{"max-cache-entries=500", "max-packetcache-entries=100"}, 0,
			[2]leaf{}, wide, full, 0, evidence.ResolverCacheTooSmall},
		{"servers 400 ms away", server.PowerDNS, nil, 0, slow, fresh, many, 0, evidence.ResolverUpstreamSlow},
		{"servers that truncate", server.PowerDNS, nil, 0, trunc, fresh, many, 0, evidence.ResolverTCPBound},
		{"servers that lose half", server.PowerDNS, nil, 0, lossy, fresh, many, 0, evidence.ResolverUpstreamSlow},
		{"a lame server", server.PowerDNS, nil, 0, lame, fresh, many, 0, evidence.ResolverLameUpstream},
		{"query log", server.PowerDNS, []string{"quiet=no"}, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverLogCost},

		{"none", server.Dnsmasq, nil, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverNothingToTune},
		{"150 cache entries", server.Dnsmasq, []string{"--cache-size=150"}, 0, [2]leaf{}, wide, full, 0,
			evidence.ResolverCacheTooSmall},
		{"query log", server.Dnsmasq, []string{"--log-queries"}, 0, [2]leaf{}, popular, gentle, 0, evidence.ResolverLogCost},
	}
}

// suite are the rows of every run: the server itself counts what the fault does, or runs before the
// other work of the machine, so that none hides it.
var suite = []string{"bind, one worker", "bind, servers that truncate", "unbound, 8 queries a thread",
	"knot-resolver, servers 400 ms away", "powerdns-recursor, servers that lose half", "dnsmasq, none"}

// inside marks the process in the namespace.
const inside = "LINERATE_TEST_PLANTED"

// TestPlanted plants each fault in a real server and asks for the first finding. Its bound is that
// of the issue, 95 % of all, because a busy machine is a fault that the test did not plant.
//
// The suite plays one row for each program. LINERATE_PLANTED_ROUNDS=N plays all rows N times, and
// LINERATE_PLANTED_ONLY those with a text.
func TestPlanted(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers, testenv.Long)
	if os.Getenv(inside) == "" {
		t.Setenv(inside, "1")
		var out bytes.Buffer
		status, err := world.Enter(t.Context(), []string{"-test.run=^TestPlanted$", "-test.v", "-test.timeout=60m"}, &out,
			&out)
		t.Log(out.String())
		if err != nil || status != 0 {
			t.Fatalf("status %d, %v", status, err)
		}
		return
	}
	if err := world.Furnish(); err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	// A session of its own, so that prioritize changes no other process.
	if _, err := unix.Setsid(); err != nil {
		t.Fatal(err)
	}
	rounds, _ := strconv.Atoi(os.Getenv("LINERATE_PLANTED_ROUNDS"))
	only := os.Getenv("LINERATE_PLANTED_ONLY")
	right, all := 0, 0
	for round := range max(rounds, 1) {
		for _, p := range plants() {
			title := fmt.Sprintf("%s, %s", p.kind, p.fault)
			if !strings.Contains(title, only) || rounds == 0 && only == "" && !slices.Contains(suite, title) {
				continue
			}
			o, first, err := p.judged(t)
			if errors.Is(err, exec.ErrNotFound) {
				testenv.Missing(t, testenv.Peers, err)
			}
			if err != nil {
				t.Errorf("%s: %v", title, err)
				continue
			}
			verdict := "WRONG"
			if all++; first.Code == p.want {
				right++
				verdict = "right"
			}
			t.Logf("round %d | %s | %s | %s | %s | %s", round+1, p.kind, p.fault, first.Code, verdict, first.Title)
			if verdict == "WRONG" {
				seen, _ := json.Marshal(o) // it has no type that does not encode
				t.Logf("    %s", seen)
			}
		}
	}
	t.Logf("%d of %d are first right", right, all)
	if float64(right) < 0.95*float64(all) {
		t.Errorf("%d of %d are first right, want 95 %%", right, all)
	}
}

// first is the priority of a play that needs a thread which is always ready and runs: beside it,
// other work of the machine gets a hundredth of the time.
const first = -20

// prioritize gives a priority to every thread of this process; those that they start inherit it.
// Between sessions, the kernel compares the priorities of their groups alone (sched(7), autogroup).
func prioritize(priority int) error {
	err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(priority)), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, priority); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("set the priority of thread %d: %w", id, err)
		}
	}
	return nil
}

// Bounds of what a standstill excuses: a thread that stood still for a twentieth of an observation
// was not ready all the time, and a machine that pauses again and again has a clean moment at last.
const (
	excused   = 0.05
	mostPlays = 40
)

// judged plays a row and returns the first finding. The row is played again only where the finding
// is another one and the process or its server stood still meanwhile: the test did not plant that.
func (p plant) judged(t *testing.T) (o server.Observation, first evidence.Finding, err error) {
	for play := 1; ; play++ {
		o, stood, err := p.observe(t)
		if err != nil {
			return o, first, err
		}
		first = resolvers.Findings(o)[0]
		if first.Code == p.want || stood.Seconds() < excused*o.Seconds || play == mostPlays {
			return o, first, nil
		}
		t.Logf("    %s: stood still for %v of %.3g s", first.Code, stood, o.Seconds)
	}
}

// watch begins to add up how long this process had no CPU, or a server was stopped. End returns the
// sum.
func watch(pid int) (end func() time.Duration) {
	const glance = 10 * time.Millisecond
	stood := time.Duration(0)
	ended := standstill.Watch(glance, func(took time.Duration) {
		if took > 3*glance || stopped(pid) {
			stood += took
		}
	})
	return func() time.Duration {
		ended()
		return stood
	}
}

// stopped reports whether a signal has stopped a process (proc_pid_stat(5), state T).
func stopped(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // one that ended is not stopped
	_, state, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(state, "T")
}

// observe starts a server with its fault, loads and observes it, and returns how long it or this
// process stood still meanwhile.
func (p plant) observe(t *testing.T) (o server.Observation, stood time.Duration, err error) {
	var none server.Observation
	watched := 4 * time.Second
	// Pdeathsig acts when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if p.load.Rate == flood.Rate {
		watched = time.Second // enough for the time of a thread, and short enough to fall between two pauses
		var usual int
		if usual, err = syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
			err = prioritize(first)
		}
		if err != nil {
			return none, 0, err
		}
		defer func() { err = errors.Join(err, prioritize(20-usual)) }() // getpriority(2) of Linux returns 20 - nice
	}
	upstream := serve(t, p.leaves)
	defer upstream.close()
	dir := t.TempDir()
	cmd, err := p.command(dir)
	if err != nil {
		return none, 0, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return none, 0, err
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return none, 0, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	}()
	if err := await(ended); err != nil {
		text, _ := os.ReadFile(log.Name())
		return none, 0, fmt.Errorf("%w: %s", err, text)
	}
	for range p.hold {
		conn, err := net.Dial("tcp", serverAt.String())
		if err != nil {
			return none, 0, err
		}
		defer conn.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	warm := make(chan struct{})
	go func() { done <- p.generate(ctx, warm) }()
	<-warm
	target := server.Target{Address: serverAt}
	if p.kind == server.BIND {
		target.RNDCConfig = filepath.Join(dir, "rndc.conf")
	}
	end := watch(cmd.Process.Pid)
	o, err = server.Observe(ctx, target, watched)
	stood = end()
	cancel()
	loaded := <-done
	if loaded != nil && !errors.Is(loaded, context.Canceled) {
		err = errors.Join(err, loaded)
	}
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return none, 0, fmt.Errorf("%w; its log ends with %s", err, text[max(0, len(text)-2000):])
	}
	if len(o.Unseen) > 0 {
		t.Logf("    unseen: %q", o.Unseen)
	}
	return o, stood, nil
}

// generate loads the server until the context ends, in short runs, each of which begins as its
// options say. It closes warm after the first one.
func (p plant) generate(ctx context.Context, warm chan struct{}) error {
	m := p.model
	set, err := m.New(message.QueryOptions{Recursion: true, UDPBytes: 1232})
	if err != nil {
		close(warm)
		return err
	}
	for round := 0; ; round++ {
		o := p.load
		o.Server, o.Names, o.Duration, o.Timeout, o.Seed = serverAt, set, time.Second, time.Second, uint64(round)
		if p.want == evidence.ResolverCacheTooSmall && round == 0 {
			o.Duration, o.Queries = time.Minute, 12_000 // until the cache is full, on any machine
		}
		if p.load.Rate == flood.Rate && round > 0 {
			o.Duration = time.Minute // without pauses
		}
		_, err := load.Run(ctx, o, nil)
		if round == 0 {
			close(warm)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// await waits until the server answers a question that needs no other server, with any code.
func await(ended chan struct{}) error {
	q := message.AppendQuery(nil, []byte{0}, message.TypeNS, message.QueryOptions{})
	for range 300 {
		select {
		case <-ended:
			return errors.New("the server ended")
		case <-time.After(200 * time.Millisecond):
		}
		conn, err := net.Dial("udp", serverAt.String())
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, err = conn.Write(q)
		if err == nil {
			_, err = conn.Read(make([]byte, 4096))
		}
		_ = conn.Close()
		if err == nil {
			return nil
		}
	}
	return errors.New("the server does not answer within a minute")
}

// find returns a server's program.
func find(name string) (string, error) {
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", name, exec.ErrNotFound)
}

// command writes a server's configuration into dir and returns its command line.
func (p plant) command(dir string) (*exec.Cmd, error) {
	workers := p.workers
	if workers == 0 {
		workers = 2
	}
	options := strings.Join(p.options, "\n")
	files := map[string]string{"hints": ". 3600 NS a.ns.\na.ns. 3600 A 127.0.0.3\n"}
	var program string
	var args []string
	switch p.kind {
	case server.BIND:
		const key = "key k { algorithm hmac-sha256; secret \"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0\"; };\n"
		files["named.conf"] = key + fmt.Sprintf(`options { directory %q; listen-on { 127.0.0.2; }; listen-on-v6 { none; };
	query-source address 127.0.0.2; pid-file none; session-keyfile none; lock-file none; dnssec-validation no;
	empty-zones-enable no; allow-query { any; };
	%s
};
controls { inet 127.0.0.2 port 953 allow { any; } keys { k; }; };
statistics-channels { inet 127.0.0.2 port 8053 allow { any; }; };
zone "." { type hint; file "hints"; };
`, dir, options)
		files["rndc.conf"] = key + "options { default-key k; default-server 127.0.0.2; default-port 953; };\n"
		program, args = "named", []string{"-c", filepath.Join(dir, "named.conf"), "-g", "-n", strconv.Itoa(workers)}
	case server.Unbound:
		files["unbound.conf"] = fmt.Sprintf(`server:
	directory: %q
	username: ""
	chroot: ""
	pidfile: ""
	use-syslog: no
	interface: 127.0.0.2
	outgoing-interface: 127.0.0.2
	access-control: 127.0.0.0/8 allow
	do-not-query-localhost: no
	module-config: "iterator"
	root-hints: "hints"
	num-threads: %d
	extended-statistics: yes
	local-zone: "test." nodefault
	%s
remote-control:
	control-enable: yes
	control-interface: %q
	control-use-cert: no
`, dir, workers, options, filepath.Join(dir, "control"))
		program, args = "unbound", []string{"-d", "-p", "-c", filepath.Join(dir, "unbound.conf")}
	case server.Knot:
		if !strings.Contains(options, "cache.size") { // a file of LMDB cannot shrink
			options = "cache.size = 20*MB\n" + options
		}
		files["config"] = fmt.Sprintf(`net.listen('127.0.0.2', 53, { kind = 'dns' })
modules.unload('ta_update') modules.unload('ta_signal_query') modules.unload('priming')
modules = { 'stats' }
trust_anchors.remove('.')
policy.add(policy.all(policy.STUB({'127.0.0.5', '127.0.0.6'})))
%s
`, options)
		program, args = "kresd", []string{"-n", "-c", filepath.Join(dir, "config"), dir}
	case server.PowerDNS:
		program, args = "pdns_recursor", []string{"--daemon=no", "--config-dir=" + dir, "--socket-dir=" + dir,
			"--local-address=127.0.0.2", "--query-local-address=127.0.0.2", "--hint-file=" + filepath.Join(dir, "hints"),
			"--dnssec=off", "--write-pid=no", "--dont-query=", "--setuid=", "--setgid=", "--threads=2",
			"--disable-syslog=yes", "--quiet=yes", "--serve-rfc1918=no", "--allow-from=127.0.0.0/8",
			"--security-poll-suffix="}
		for _, o := range p.options {
			args = append(args, "--"+o)
		}
	case server.Dnsmasq:
		program, args = "dnsmasq", append([]string{"-d", "-C", "/dev/null", "--listen-address=127.0.0.2",
			"--bind-interfaces", "--no-resolv", "--server=127.0.0.5", "--no-hosts", "--user=", "--group="}, p.options...)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	path, err := find(program)
	if err != nil {
		return nil, err
	}
	return exec.Command(path, args...), nil
}

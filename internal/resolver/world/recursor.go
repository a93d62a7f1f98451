package world

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/nameserver"
	"github.com/linerate/linerate/internal/resolver/server"
)

// Recursor is a program that resolves names.
type Recursor string

// The recursors. Package server calls them the same.
const (
	BIND    Recursor = "bind"
	Unbound Recursor = "unbound"
	Knot    Recursor = "knot-resolver"
)

// Recursors returns all of them.
func Recursors() []Recursor { return []Recursor{BIND, Unbound, Knot} }

// program is the name of the recursor's executable.
func (r Recursor) program() string { return string(r.Kind()) }

// Kind returns how package nameserver calls the program.
func (r Recursor) Kind() nameserver.Kind {
	switch r {
	case Unbound:
		return nameserver.Unbound
	case Knot:
		return nameserver.Kresd
	}
	return nameserver.Named
}

// Find returns the path of a recursor's program. Distributions keep it outside the path of ordinary
// users. The error wraps exec.ErrNotFound.
func (r Recursor) Find() (string, error) {
	if path, err := exec.LookPath(r.program()); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, r.program())); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", r.program(), exec.ErrNotFound)
}

// Version returns what the program says about itself, in one line.
func (r Recursor) Version(ctx context.Context) (string, error) {
	path, err := r.Find()
	if err != nil {
		return "", err
	}
	flag := "-v"
	if r != BIND {
		flag = "-V"
	}
	out, err := exec.CommandContext(ctx, path, flag).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "warning:") { // kresd has one about the limit of open files
			return strings.TrimSpace(line), nil
		}
	}
	return "", fmt.Errorf("ask %s for its version: %w", path, cmp.Or(err, io.ErrUnexpectedEOF))
}

// The addresses of the world.
var (
	recursorAt = netip.AddrFrom4([4]byte{127, 0, 0, 2})
	rootAt     = netip.AddrFrom4([4]byte{127, 0, 0, 3})
	topAt      = netip.AddrFrom4([4]byte{127, 0, 0, 4})
	leafAt     = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 5}), netip.AddrFrom4([4]byte{127, 0, 0, 6}),
		netip.AddrFrom4([4]byte{127, 0, 0, 7})}
)

const statisticsPort = 8053

// running is a started recursor.
type running struct {
	kind  Recursor
	dir   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// mostLog bounds what is read of a recursor's log, in octets.
const mostLog = 1 << 20

// NotStartedError is a recursor that ended before it answered.
type NotStartedError struct {
	Program string
	Reason  string // the line of its log that says why
}

func (e *NotStartedError) Error() string {
	return fmt.Sprintf("start %s: it ended: %s", e.Program, e.Reason)
}

// start writes the configuration into dir and starts a recursor. The number of workers is for BIND;
// that of Unbound is an option of its file, and a process of Knot Resolver has one.
func start(ctx context.Context, kind Recursor, dir string, options []string, workers int) (*running, error) {
	path, err := kind.Find()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	files := bindFiles(dir, options)
	args := []string{"-c", config(kind, dir), "-g", "-n", strconv.Itoa(workers)}
	switch kind {
	case Unbound:
		files = unboundFiles(dir, options)
		args = []string{"-d", "-p", "-c", config(kind, dir)}
	case Knot:
		files = knotFiles(options)
		args = []string{"-n", "-c", config(kind, dir), dir}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("start %s: %w", kind, err)
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	defer log.Close() // the recursor has its own
	r := &running{kind: kind, dir: dir, cmd: exec.CommandContext(ctx, path, args...), ended: make(chan struct{})}
	r.cmd.Dir = dir
	r.cmd.Stdout, r.cmd.Stderr = log, log
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	go func() {
		_ = r.cmd.Wait() // its log says why it ended
		close(r.ended)
	}()
	return r, nil
}

// config is the path of a recursor's configuration.
func config(kind Recursor, dir string) string {
	switch kind {
	case Unbound:
		return filepath.Join(dir, "unbound.conf")
	case Knot:
		return filepath.Join(dir, "kresd.conf")
	}
	return filepath.Join(dir, "named.conf")
}

// stop ends the recursor.
func (r *running) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-r.ended:
	case <-time.After(10 * time.Second):
		_ = r.cmd.Process.Kill() // likewise
		<-r.ended
	}
}

// lines returns the log so far.
func (r *running) lines() []string {
	f, err := os.Open(filepath.Join(r.dir, "log"))
	if err != nil {
		return nil
	}
	defer f.Close()                                // opened for reading
	b, _ := io.ReadAll(io.LimitReader(f, mostLog)) // what could be read is looked at
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// reason returns the line of the log that says why the program ended.
func (r *running) reason() string { return reasonOf(r.lines()) }

func reasonOf(lines []string) string {
	var last string
	for _, line := range lines {
		text := withoutPlace(line)
		if strings.HasPrefix(text, "loading configuration: ") && last != "" {
			return last // named has named the place before it gives up
		}
		if strings.Contains(text, "no longer exists") || strings.Contains(text, "error:") ||
			strings.Contains(text, "unknown option") {
			return text
		}
		last = text
	}
	return last
}

// place is what both programs write before each line: the time, and of a configuration file its
// directory.
var place = pattern.New(`^(\d{2}-\w{3}-\d{4} [\d:.]+ |\[\d+\] \w+\[\d+:\d+\] )?(/\S*/)?`)

func withoutPlace(line string) string { return place.ReplaceAllString(line, "") }

// bindFiles is the configuration of named: a base, the options under test, and the root of the
// world.
func bindFiles(dir string, options []string) map[string]string {
	return map[string]string{
		"named.conf": fmt.Sprintf(`options {
	directory %q;
	listen-on { %s; };
	listen-on-v6 { none; };
	query-source address %[2]s;
	pid-file none;
	session-keyfile none;
	lock-file none;
	dnssec-validation no;
	empty-zones-enable no;
	allow-query { any; };
	%[3]s
};
controls { };
statistics-channels { inet %[2]s port %[4]d allow { any; }; };
zone "." { type hint; file "hints"; };
`, dir, recursorAt, strings.Join(options, "\n\t"), statisticsPort),
		"hints": hints(),
	}
}

func hints() string { return fmt.Sprintf(". 3600 NS a.root.\na.root. 3600 A %s\n", rootAt) }

// unboundFiles is the configuration of Unbound.
func unboundFiles(dir string, options []string) map[string]string {
	return map[string]string{
		"unbound.conf": fmt.Sprintf(`server:
	directory: %q
	username: ""
	chroot: ""
	pidfile: ""
	use-syslog: no
	interface: %s
	outgoing-interface: %[2]s
	access-control: 127.0.0.0/8 allow
	do-not-query-localhost: no
	module-config: "iterator"
	root-hints: "hints"
	local-zone: "test." nodefault
	%[3]s
remote-control:
	control-enable: yes
	control-interface: %[4]q
	control-use-cert: no
`, dir, recursorAt, strings.Join(options, "\n\t"), filepath.Join(dir, "control")),
		"hints": hints(),
	}
}

// knotFiles is the configuration of Knot Resolver.
func knotFiles(options []string) map[string]string {
	// Most options need an open cache, and an open one does not shrink.
	cache := "cache.open(100 * MB)"
	rest := make([]string, 0, len(options))
	for _, o := range options {
		if optionName(o) == "cache.size" {
			cache = o
		} else {
			rest = append(rest, o)
		}
	}
	return map[string]string{
		"kresd.conf": fmt.Sprintf(`net.ipv6 = false
net.listen('%s', 53, { kind = 'dns' })
modules = { 'stats', 'hints > iterate' }
hints.root_file('hints')
trust_anchors.remove('.')
policy.add(policy.suffix(policy.PASS, {todname('test.')}))
%s
%s
`, recursorAt, cache, strings.Join(rest, "\n")),
		"hints": hints(),
	}
}

// Counters are a recursor's own.
type Counters struct {
	Hits, Misses uint64
	Evictions    *uint64 // nil: it does not count them
}

// counters reads them.
func (r *running) counters(ctx context.Context) (Counters, error) {
	t := server.Target{Kind: server.Kind(r.kind)}
	switch r.kind {
	case BIND:
		t.Endpoint = "http://" + netip.AddrPortFrom(recursorAt, statisticsPort).String()
	case Unbound:
		t.Endpoint = filepath.Join(r.dir, "control")
	case Knot: // the one process has one socket
		sockets, err := filepath.Glob(filepath.Join(r.dir, "control", "*"))
		if err != nil || len(sockets) == 0 {
			return Counters{}, fmt.Errorf("read statistics of kresd: %w: no control socket in %s", os.ErrNotExist, r.dir)
		}
		t.Endpoint = sockets[0]
	}
	s, err := server.Read(ctx, t)
	if err != nil {
		return Counters{}, fmt.Errorf("read statistics of %s: %w", r.kind.program(), err)
	}
	return countersOf(s), nil
}

func countersOf(s server.Statistics) Counters {
	c := Counters{Hits: uint64(s.Of(server.Hits)), Misses: uint64(s.Of(server.Misses))}
	if n, ok := s.Get(server.Evictions); ok {
		evictions := uint64(n)
		c.Evictions = &evictions
	}
	return c
}

package native_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/native"
	"github.com/linerate/linerate/internal/kernel/mib"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// catalogue reads the definitions of a system, which only its own builds have inside.
func catalogue(t testing.TB, name string) *knob.Catalog {
	t.Helper()
	data, err := os.ReadFile("../catalogue/" + name + "/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := knob.ParseCatalog(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func recorded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// played is a machine that answers from a recording, and changes it as the real programs would: the
// recording is the text that the program prints, and edits go into that text.
type played struct {
	mu    sync.Mutex
	texts map[string]string // what each reading command prints
	run   func(p *played, argv []string) (string, error)
}

// Run implements tool.Runner.
func (p *played) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out, err := p.run(p, append([]string{program}, args...))
	return []byte(out), err
}

// failure is a program that ran and failed.
func failure(program, said string) error {
	return &tool.ExitError{Program: program, Status: 1, Stderr: said}
}

// bsd is a FreeBSD host from its recordings.
type bsd struct {
	*played
	tree  *mib.Dump
	files *durable.Mem
}

// stanza finds the lines of one interface.
func stanza(text, name string) (from, to int) {
	from = -1
	at := 0
	for line := range strings.Lines(text) {
		if line[0] != '\t' && from >= 0 {
			return from, at
		}
		if strings.HasPrefix(line, name+": ") {
			from = at
		}
		at += len(line)
	}
	return from, at
}

var (
	mtuWord     = regexp.MustCompile(`mtu \d+`)
	optionsLine = regexp.MustCompile(`\toptions=[0-9a-f]+<([^>]*)>`)
)

// setIfconfig does what `ifconfig IF ARGS` does.
func (p *played) setIfconfig(name string, args []string) error {
	all := p.texts["ifconfig"]
	from, to := stanza(all, name)
	if from < 0 {
		return failure("ifconfig", "ifconfig: interface "+name+" does not exist")
	}
	text := all[from:to]
	if args[0] == "mtu" {
		if n, err := strconv.Atoi(args[1]); err != nil || n < 72 || n > 9216 {
			return failure("ifconfig", "ifconfig: ioctl SIOCSIFMTU (set mtu): Invalid argument")
		}
		text = mtuWord.ReplaceAllString(text, "mtu "+args[1])
	} else {
		word, off := strings.CutPrefix(args[0], "-")
		names := map[string]string{"tso4": "TSO4", "tso6": "TSO6", "lro": "LRO", "rxcsum": "RXCSUM", "txcsum": "TXCSUM"}
		bit := names[word]
		found := optionsLine.FindStringSubmatch(text)
		bits := slices.DeleteFunc(strings.Split(found[1], ","), func(b string) bool { return b == bit })
		if !off {
			bits = append(bits, bit)
		}
		text = strings.Replace(text, found[1], strings.Join(bits, ","), 1)
	}
	p.texts["ifconfig"] = all[:from] + text + all[to:]
	return nil
}

func newBSD(t testing.TB) *bsd {
	b := &bsd{tree: mib.ParseDump(recorded(t, "freebsd-sysctl.txt")), files: durable.NewMem()}
	for _, name := range []string{"hw.em.max_interrupt_rate", "net.isr.maxthreads", "kern.hz",
		"dev.em.0.iflib.override_nrxds"} {
		b.tree.Mark(name, false, true)
	}
	b.tree.Mark("dev.em.0.mac_stats.crc_errs", false, false)
	b.tree.OnSet = func(name, old, value string) (string, error) {
		if name == "net.inet.tcp.cc.algorithm" && value != "newreno" && value != "cubic" {
			return "", syscall.ESRCH
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 1<<31 {
			return "", syscall.EINVAL
		}
		return value, nil
	}
	if err := b.files.Mkdir("/boot", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(b.files, "/boot/loader.conf", []byte("autoboot_delay=\"3\"\nkern.hz=\"1000\" # as before"),
		0o644); err != nil {
		t.Fatal(err)
	}
	b.played = &played{texts: map[string]string{"ifconfig": recorded(t, "freebsd-ifconfig.txt")},
		run: func(p *played, argv []string) (string, error) {
			if argv[0] != "ifconfig" {
				return "", fmt.Errorf("%s: %w", argv[0], tool.ErrNoProgram)
			}
			if argv[1] != "-m" {
				return "", p.setIfconfig(argv[1], argv[2:])
			}
			if len(argv) == 2 {
				return p.texts["ifconfig"], nil
			}
			from, to := stanza(p.texts["ifconfig"], argv[2])
			if from < 0 {
				return "", failure("ifconfig", "ifconfig: interface "+argv[2]+" does not exist")
			}
			return p.texts["ifconfig"][from:to], nil
		}}
	return b
}

func (b *bsd) host(t testing.TB) *native.Host {
	return native.FreeBSD(catalogue(t, "freebsd"), b.tree, b.played, b.files)
}

func TestFreeBSD(t *testing.T) {
	knobtest.Suite(t, func(t *testing.T) knobtest.Fixture {
		b := newBSD(t)
		host := b.host(t)
		return knobtest.Fixture{
			Backend: host,
			Writable: []knobtest.Pair{
				{Knob: "sysctl:net.inet.tcp.sendbuf_max", A: "4194304", B: "8388608"},
				{Knob: "sysctl:net.inet.tcp.cc.algorithm", A: "cubic", B: "newreno"},
				{Knob: "sysctl:dev.em.0.itr", A: "244", B: "488"},
				{Knob: "ifconfig:em0/mtu", A: "9000", B: "1500"},
				{Knob: "ifconfig:em0/tso4", A: "on", B: "off"},
				{Knob: "ifconfig:em0/lro", A: "off", B: "on"},
				{Knob: "loader:hw.em.max_interrupt_rate", A: "16000", B: "absent"},
				{Knob: "loader:kern.hz", A: "2000", B: "1000"},
			},
			Messy: []knobtest.Messy{
				{Knob: "sysctl:net.inet.tcp.sendspace", Text: " 0065536 ", ReadBack: "65536"},
				{Knob: "ifconfig:em0/rxcsum", Text: "0", ReadBack: "off"},
			},
			Invalid: []knob.Setting{
				{Knob: "sysctl:net.inet.tcp.sendspace", Value: "many"},
				{Knob: "sysctl:net.inet.tcp.sendspace", Value: "99999999999"},
				{Knob: "sysctl:kern.ipc.nmbclusters", Value: "32768"},
				{Knob: "sysctl:net.inet.tcp.cc.algorithm", Value: "htcp"},
				{Knob: "ifconfig:em0/mtu", Value: "64000"},
				{Knob: "ifconfig:em0/tso4", Value: "perhaps"},
				{Knob: "loader:kern.hz", Value: "fast"},
			},
			ReadOnly: knob.Setting{Knob: "sysctl:hw.em.max_interrupt_rate", Value: "16000"},
			Missing: []knob.ID{"sysctl:net.inet.tcp.recvbuf_inc", "ifconfig:em9/mtu", "loader:no.such.tunable",
				"ifconfig:-a/mtu"},
			Unsupported: "link:em0/mtu",
			Foreign: func(t *testing.T, s knob.Setting) {
				b.foreign(t, s)
			},
			Device: "ifconfig:em0/mtu",
			Vanish: func(*testing.T) {
				b.mu.Lock()
				defer b.mu.Unlock()
				from, to := stanza(b.texts["ifconfig"], "em0")
				b.texts["ifconfig"] = b.texts["ifconfig"][:from] + b.texts["ifconfig"][to:]
			},
		}
	})
}

// foreign changes a setting as an administrator would.
func (b *bsd) foreign(t *testing.T, s knob.Setting) {
	t.Helper()
	switch s.Knob.Kind() {
	case knob.KindSysctl:
		b.tree.Put(s.Knob.Attribute(), string(s.Value))
	case knob.KindIfconfig:
		args := []string{s.Knob.Attribute(), string(s.Value)}
		if s.Value == "off" {
			args[0] = "-" + args[0]
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if err := b.setIfconfig(s.Knob.Subject(), args); err != nil {
			t.Fatal(err)
		}
	case knob.KindLoader:
		text := ""
		if s.Value != knob.Absent {
			text = s.Knob.Attribute() + "=" + string(s.Value) + "\n"
		}
		if err := durable.Replace(b.files, "/boot/loader.conf", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// What was set and undone leaves loader.conf as it was, to the byte: with and without a newline at
// its end, and when it did not exist.
func TestLoaderConfIsRestored(t *testing.T) {
	for _, before := range []string{"", "kern.hz=\"1000\"", "a=\"1\"\n", "a=1\n\n\n"} {
		b := newBSD(t)
		if err := durable.Replace(b.files, "/boot/loader.conf", []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		host := b.host(t)
		for _, id := range []knob.ID{"loader:hw.em.max_interrupt_rate", "loader:net.isr.maxthreads"} {
			if err := host.Write(t.Context(), id, "4"); err != nil {
				t.Fatal(err)
			}
		}
		during, _ := b.files.ReadFile("/boot/loader.conf")
		if !strings.Contains(string(during), "hw.em.max_interrupt_rate=\"4\"\nnet.isr.maxthreads=\"4\"\n") {
			t.Errorf("after the writes: %q", during)
		}
		for _, id := range []knob.ID{"loader:net.isr.maxthreads", "loader:hw.em.max_interrupt_rate"} {
			if err := host.Write(t.Context(), id, knob.Absent); err != nil {
				t.Fatal(err)
			}
		}
		after, _ := b.files.ReadFile("/boot/loader.conf")
		if string(after) != before {
			t.Errorf("%q came back as %q", before, after)
		}
	}
}

// Each change empties the host cache, so that a trial does not start with what the one before it
// learned; a line for the next start changes nothing now.
func TestHostCacheIsPurged(t *testing.T) {
	b := newBSD(t)
	b.tree.Put("net.inet.tcp.hostcache.purgenow", "0")
	purges := 0
	before := b.tree.OnSet
	b.tree.OnSet = func(name, old, value string) (string, error) {
		if name == "net.inet.tcp.hostcache.purgenow" {
			purges++
			return "0", nil
		}
		return before(name, old, value)
	}
	host := b.host(t)
	for _, s := range []knob.Setting{{Knob: "sysctl:net.inet.tcp.sendspace", Value: "65536"},
		{Knob: "sysctl:net.inet.tcp.sendspace", Value: "65536"}, // as it is: no change
		{Knob: "ifconfig:em0/lro", Value: "off"}, {Knob: "loader:kern.hz", Value: "2000"}} {
		if err := host.Write(t.Context(), s.Knob, s.Value); err != nil {
			t.Fatal(err)
		}
	}
	if purges != 2 {
		t.Errorf("%d purges, want 2", purges)
	}
}

func TestFreeBSDInstances(t *testing.T) {
	c, host := catalogue(t, "freebsd"), newBSD(t).host(t)
	for pattern, want := range map[knob.ID][]knob.ID{
		"sysctl:dev.em.*.itr":                  {"sysctl:dev.em.0.itr"},
		"sysctl:dev.*.*.iflib.rx_budget":       {"sysctl:dev.em.0.iflib.rx_budget"},
		"sysctl:net.inet.tcp.rfc1323":          {"sysctl:net.inet.tcp.rfc1323"},
		"sysctl:dev.em.*.enable_aim":           nil,
		"ifconfig:*/mtu":                       {"ifconfig:em0/mtu", "ifconfig:lo0/mtu"},
		"ifconfig:*/tso4":                      {"ifconfig:em0/tso4"},
		"ifconfig:*/polling":                   nil,
		"loader:dev.em.*.iflib.override_nrxds": {"loader:dev.em.0.iflib.override_nrxds"},
	} {
		d, ok := c.Lookup(pattern)
		if !ok {
			t.Errorf("%s: not in the catalogue", pattern)
			continue
		}
		got, err := host.Instances(t.Context(), d)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", pattern, got, err, want)
		}
	}
}

package guesttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/guest"
)

// patience bounds the boot and each test. It guards against guests that hang: a boot takes some
// seconds and the longest test some tens of seconds, and many times as long where QEMU gets a fifth
// of a processor.
const patience = 10 * time.Minute

// soakPatience bounds a test that repeats: its guest may get less than a fifth.
const soakPatience = time.Hour

func bound() time.Duration {
	if testenv.Provided(testenv.Soak) {
		return soakPatience
	}
	return patience
}

// options describes the guest, which is the same in all test packages that call Main.
var options = guest.Options{
	CPUs:        2,
	MemoryBytes: 768 << 20,
	Cards: []guest.Card{
		{Model: "e1000"}, {Model: "e1000-82545em"}, {Model: "e1000e"},
		{Model: "virtio-net-pci,mq=on,vectors=6,rss=on", Queues: 2}, {Model: "vmxnet3"},
		{Model: "usb-net"},
	},
	Modules: []string{
		"e1000", "e1000e", "virtio_net", "vmxnet3", "xhci_pci", "cdc_ether",
		// The guest has no modprobe(8), so modules that a kernel would load on demand are listed
		// too.
		"8021q", "bonding", "bridge", "dummy", "ifb", "tun", "veth", "tcp_bbr", "tcp_htcp",
		"sch_cake", "sch_fq", "sch_fq_codel", "sch_htb", "sch_ingress", "sch_netem", "sch_tbf",
	},
	Programs: []string{"ip", "tc", "ethtool", "sysctl"},
}

// world holds the guest of this test binary, which is booted once.
var world struct {
	once sync.Once
	g    *guest.Guest
	err  error
}

// Main is for TestMain: in the guest's first process it serves the guest, elsewhere it runs the
// tests and then ends the guest.
func Main(m *testing.M) {
	guest.Init()
	status := m.Run()
	if world.g != nil {
		if err := world.g.Close(); err != nil && status == 0 {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// MainIn is Main with a guest of the package's own.
func MainIn(m *testing.M, o guest.Options) {
	options = o
	Main(m)
}

// In reports whether the calling test runs in the guest. On the host it runs the test of the same
// name there, makes its result that of the calling test, and returns false. Tests that call it may
// be parallel, so that the guest boots beside other tests; in the guest they run one after another.
// Parts of the test whose names match a pattern of except are left out there.
func In(t *testing.T, except ...string) bool {
	t.Helper()
	if guest.Inside() {
		return true
	}
	run(t, only(t.Name()), strings.Join(except, "|"))
	return false
}

// only is the pattern of one test, which package testing compares part by part.
func only(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// Others runs, on the kernel of the guest, the tests of this package whose names match pattern and
// none of except. In the guest it does nothing.
func Others(t *testing.T, pattern string, except ...string) {
	t.Helper()
	if !guest.Inside() {
		run(t, pattern, strings.Join(except, "|"))
	}
}

// inGuest lists the things of package testenv that the guest provides.
var inGuest = []string{string(testenv.NetNS), string(testenv.Guest), string(testenv.Peers), string(testenv.Network),
	string(testenv.Long)}

// run runs tests in the guest; an empty except excludes none.
func run(t *testing.T, pattern, except string) {
	t.Helper()
	testenv.Need(t, testenv.Guest)
	g := booted(t)
	ctx, cancel := context.WithTimeout(t.Context(), bound())
	defer cancel()
	var out bytes.Buffer
	started := time.Now()
	status, err := g.Run(ctx, guest.Command{
		Args: []string{"/init", "-test.run", pattern, "-test.skip", except, "-test.v", "-test.count=1",
			"-test.parallel=2"},
		Env: []string{testenv.Variable + "=" + strings.Join(inGuest, ",")},
	}, &out, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	passed, skipped, rest, notes := read(out.String())
	switch {
	case status != 0:
		t.Errorf("exit status %d in the guest:\n%s", status, rest)
	case skipped > 0:
		t.Errorf("%d tests skipped in the guest, which provides everything that a test may need:\n%s", skipped, rest)
	case passed == 0:
		t.Errorf("no test in the guest matches %s:\n%s", pattern, rest)
	}
	t.Logf("%d tests passed in a guest with Linux %s in %.1f s", passed, g.Release, time.Since(started).Seconds())
	for _, n := range notes {
		t.Log(n)
	}
}

// read parses the output of a test binary: how many tests passed and were skipped, the notes, and
// the lines that explain a failure.
func read(output string) (passed, skipped int, rest string, notes []string) {
	var lines strings.Builder
	for line := range strings.Lines(output) {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(word, "--- PASS: "):
			passed++
			continue
		case strings.HasPrefix(word, "=== "):
			continue
		case strings.HasPrefix(word, "--- SKIP: "):
			skipped++
		}
		if _, note, ok := strings.Cut(word, ": note: "); ok {
			notes = append(notes, note)
			continue
		}
		lines.WriteString(line)
	}
	return passed, skipped, lines.String(), notes
}

// booted returns the guest, or ends the test.
func booted(t *testing.T) *guest.Guest {
	t.Helper()
	world.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound())
		defer cancel()
		world.g, world.err = guest.Boot(ctx, options)
	})
	if world.err != nil {
		testenv.Missing(t, testenv.Guest, world.err)
	}
	return world.g
}

// Interface returns the present name of a card. The model is the one in the guest's options:
// "e1000", "e1000-82545em", "e1000e", "virtio-net-pci", "vmxnet3" or "usb-net". A missing card
// fails the test.
func Interface(t testing.TB, model string) (name string) {
	t.Helper()
	if name = find(t, model); name == "" {
		t.Fatalf("the guest has no interface of a card %s", model)
	}
	return name
}

// find is Interface, with "" for a missing card. QEMU numbers the addresses of its cards. A VLAN
// has the address of its card, but no device.
func find(t testing.TB, model string) (name string) {
	t.Helper()
	i := slices.IndexFunc(options.Cards,
		func(c guest.Card) bool { m, _, _ := strings.Cut(c.Model, ","); return m == model })
	if i < 0 {
		t.Fatalf("the guest's options have no card %s", model)
	}
	devices, err := filepath.Glob("/sys/class/net/*/device")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(d), "address"))
		if err == nil && strings.TrimSpace(string(b)) == guest.CardAddress(i) {
			return filepath.Base(filepath.Dir(d))
		}
	}
	return ""
}

// PCIDevice returns the directory in /sys of the PCI device that carries an interface. For a virtio
// card that is the device below the virtio one.
func PCIDevice(t testing.TB, name string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(filepath.Join("/sys/class/net", name, "device"))
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "remove")); err == nil {
			return dir
		}
	}
	t.Fatalf("%s has no PCI device", name)
	return ""
}

// Unplug removes the card that carries an interface from the machine without asking the driver, as
// pulling the card would. [Plug] brings it back.
func Unplug(t testing.TB, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(PCIDevice(t, name), "remove"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
}

// Plug returns the name of a card, and brings the card back first if it was unplugged. A card that
// comes back has lost all its settings.
func Plug(t testing.TB, model string) (name string) {
	t.Helper()
	if name = find(t, model); name != "" {
		return name
	}
	// The drivers here probe at once, so the interface exists when the write returns.
	if err := os.WriteFile("/sys/bus/pci/rescan", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	return Interface(t, model)
}

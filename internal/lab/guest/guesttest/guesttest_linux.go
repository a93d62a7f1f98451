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

	"github.com/linerate/linerate/internal/lab/guest"
)

// patience bounds the boot and each test. It is for guests that hang: a boot takes some seconds,
// the longest test some tens of them, and ten times as long where the machine has other things to
// do.
const patience = 5 * time.Minute

// options is the one guest of all test packages.
var options = guest.Options{
	CPUs:        2,
	MemoryBytes: 768 << 20,
	Cards: []guest.Card{
		{Model: "e1000"}, {Model: "e1000-82545em"}, {Model: "e1000e"},
		{Model: "virtio-net-pci,mq=on,vectors=6", Queues: 2}, {Model: "vmxnet3"},
		{Model: "usb-net"},
	},
	Modules: []string{
		"e1000", "e1000e", "virtio_net", "vmxnet3", "xhci_pci", "cdc_ether",
		// What kernels load by themselves where there is a modprobe(8).
		"8021q", "bonding", "bridge", "dummy", "ifb", "tun", "veth", "tcp_bbr", "tcp_htcp",
		"sch_cake", "sch_fq", "sch_fq_codel", "sch_htb", "sch_ingress", "sch_netem", "sch_tbf",
	},
	Programs: []string{"ip", "tc", "ethtool", "sysctl"},
}

// world is the guest of this test binary, booted once.
var world struct {
	once sync.Once
	g    *guest.Guest
	err  error
}

// Main is for TestMain: it is the guest's first process where it has to be, and otherwise runs the
// tests and ends the guest.
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

// In says whether the calling test is in the guest. On the host it runs the test there, makes its
// result that of the calling test, and returns false. Tests that call it may be parallel, so that
// the guest boots beside others; in the guest they run one after another.
func In(t *testing.T) bool {
	t.Helper()
	if guest.Inside() {
		return true
	}
	run(t, "^"+regexp.QuoteMeta(t.Name())+"$", "")
	return false
}

// Others runs on the kernel of the guest the tests of this package whose names match pattern and
// not one of except. In the guest it does nothing.
func Others(t *testing.T, pattern string, except ...string) {
	t.Helper()
	if !guest.Inside() {
		run(t, pattern, strings.Join(except, "|"))
	}
}

// run runs tests in the guest; an empty except excludes none.
func run(t *testing.T, pattern, except string) {
	t.Helper()
	g := booted(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	started := time.Now()
	status, err := g.Run(ctx, guest.Command{
		Args: []string{"/init", "-test.run", pattern, "-test.skip", except, "-test.v", "-test.count=1",
			"-test.parallel=2"},
		Env: []string{"LINERATE_REQUIRE=netns,peers"},
	}, &out, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	passed, skipped, told, notes := read(out.String())
	switch {
	case status != 0:
		t.Errorf("exit status %d in the guest:\n%s", status, told)
	case skipped > 0:
		t.Errorf("%d tests skipped in the guest, which has all that a test can ask for:\n%s", skipped, told)
	case passed == 0:
		t.Errorf("no test in the guest matches %s:\n%s", pattern, told)
	}
	t.Logf("%d tests passed in a guest with Linux %s in %.1f s", passed, g.Release, time.Since(started).Seconds())
	for _, n := range notes {
		t.Log(n)
	}
}

// read takes the output of a test binary apart: how many tests passed and were skipped, what is
// worth telling when it failed, and the notes.
func read(output string) (passed, skipped int, told string, notes []string) {
	var rest strings.Builder
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
		rest.WriteString(line)
	}
	return passed, skipped, rest.String(), notes
}

// booted is the guest, or the end of the test.
func booted(t *testing.T) *guest.Guest {
	t.Helper()
	world.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		world.g, world.err = guest.Boot(ctx, options)
	})
	if world.err != nil {
		if strings.Contains(os.Getenv("LINERATE_REQUIRE"), "guest") {
			t.Fatalf("a guest is required: %v", world.err)
		}
		t.Skipf("needs a guest: %v", world.err)
	}
	return world.g
}

// Interface gives the name that a card has at this moment, by the model that it was asked for with:
// "e1000", "e1000-82545em", "e1000e", "virtio-net-pci", "vmxnet3", "usb-net". The test fails when
// it is not there.
func Interface(t testing.TB, model string) (name string) {
	t.Helper()
	if name = find(t, model); name == "" {
		t.Fatalf("no interface of a card %s", model)
	}
	return name
}

// find is Interface, with "" for a card that is not there. QEMU numbers the addresses of its cards;
// a VLAN has that of its card and no device.
func find(t testing.TB, model string) (name string) {
	t.Helper()
	i := slices.IndexFunc(options.Cards,
		func(c guest.Card) bool { m, _, _ := strings.Cut(c.Model, ","); return m == model })
	if i < 0 {
		t.Fatalf("the guest was made without a card %s", model)
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

// PCIDevice is the directory in /sys of the device that carries an interface: of a virtio card the
// one below virtio.
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
	t.Fatalf("%s is on no PCI device", name)
	return ""
}

// Unplug takes the card that carries an interface out of the machine, as a hand would: the driver
// is not asked. [Plug] brings it back.
func Unplug(t testing.TB, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(PCIDevice(t, name), "remove"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
}

// Plug gives the name of a card, which it brings back first if it was unplugged. A card that comes
// back has forgotten all its settings.
func Plug(t testing.TB, model string) (name string) {
	t.Helper()
	if name = find(t, model); name != "" {
		return name
	}
	// The drivers here probe at once, so that the interface is there when the write returns.
	if err := os.WriteFile("/sys/bus/pci/rescan", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	return Interface(t, model)
}

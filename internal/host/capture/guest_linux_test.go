package capture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// cards are those of a guest, with the drivers that carry them.
var cards = map[string]string{
	"e1000": "e1000", "e1000-82545em": "e1000", "e1000e": "e1000e", "virtio-net-pci": "virtio_net",
	"vmxnet3": "vmxnet3", "usb-net": "cdc_ether",
}

// ip runs ip(8).
func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// pause is the time between two looks at the state of the guest's kernel.
const pause = 10 * time.Millisecond

// carrier waits until a link is up at both ends.
func carrier(t *testing.T, name string) {
	t.Helper()
	file := filepath.Join("/sys/class/net", name, "carrier")
	for deadline := time.Now().Add(time.Minute); ; {
		b, err := os.ReadFile(file)
		switch {
		case err == nil && bytes.HasPrefix(b, []byte("1")):
			return
		case time.Now().After(deadline):
			t.Fatalf("%s: %q, %v", file, b, err)
		}
		time.Sleep(pause)
	}
}

// A capture of a host with real cards has what the host says of itself, and is the same after it
// was written and read.
func TestGuestCapture(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	// The test compares two readings, so nothing may change between them: no duplicate address
	// detection, no speed negotiation. The card on USB stays down: its function goes to sleep and
	// wakes automatically.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	for model := range cards {
		if model != "usb-net" {
			name := guesttest.Interface(t, model)
			ip(t, "link", "set", name, "up")
			carrier(t, name)
		}
	}
	parent := guesttest.Interface(t, "e1000e")
	ip(t, "address", "add", "192.168.77.1/24", "dev", parent)
	ip(t, "link", "add", "link", parent, "name", parent+".100", "type", "vlan", "id", "100")
	ip(t, "link", "set", parent+".100", "up")
	ip(t, "route", "add", "default", "via", "192.168.77.254")

	TestLive(t)

	taken, err := take(t.Context(), host.Root{}, testScrubber())
	if err != nil {
		t.Fatal(err)
	}
	text := taken.Bytes()
	read, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, read.Bytes()) {
		t.Error("written again it is another text")
	}
	want, err := taken.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := read.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(indented(t, want)), string(indented(t, got))); diff != "" {
		t.Errorf("document of the capture, of the capture that was read (-want +got):\n%s", diff)
	}
	for model, driver := range cards {
		dev, ok := got.Interface(guesttest.Interface(t, model))
		if !ok || dev.Driver != driver || dev.Virtual || dev.Bus == nil {
			t.Errorf("%s: %v %+v", model, ok, dev)
		}
	}
	if bytes.Contains(text, []byte("192.168.77.")) || bytes.Contains(text, []byte("52:54:00:00:00")) {
		t.Error("an address of the host is in the capture")
	}
	t.Logf("note: %d bytes, %d files and links", len(text), read.Len())
}

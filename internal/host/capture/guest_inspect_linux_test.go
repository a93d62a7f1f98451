package capture_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// inspect runs the command as it is typed and gives its document.
func inspect(t *testing.T, args ...string) (document map[string]any) {
	t.Helper()
	var out, errs bytes.Buffer
	status := cli.Main(append([]string{"linerate", "inspect", "--json"}, args...), strings.NewReader(""), &out, &errs)
	if err := json.Unmarshal(out.Bytes(), &document); status != 0 || err != nil {
		t.Fatalf("inspect %q: status %d, %v: %s", args, status, err, &errs)
	}
	return document
}

// The command reports what every card is, and for a capture what it reported when the capture was
// taken.
func TestGuestInspect(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	drivers := make(map[string]bool)
	live := inspect(t)
	for _, i := range live["interfaces"].([]any) {
		if driver, ok := i.(map[string]any)["driver"].(string); ok {
			drivers[driver] = true
		}
	}
	for _, driver := range []string{"e1000", "e1000e", "virtio_net", "vmxnet3", "cdc_ether"} {
		if !drivers[driver] {
			t.Errorf("no interface with driver %s among %v", driver, drivers)
		}
	}
	file := filepath.Join(t.TempDir(), "guest.capture")
	want, got := inspect(t, "--capture", file), inspect(t, "--from", file)
	for _, d := range []map[string]any{want, got} {
		delete(d, "time") // when the command ran
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inspect --capture, inspect --from (-want +got):\n%s", diff)
	}
	if live["schema"] != "linerate.inspect/1" || got["schema"] != live["schema"] {
		t.Errorf("schema %v, then %v", live["schema"], got["schema"])
	}
}

// A card that is powered down stays so while the host is inspected and captured.
func TestGuestInspectWakesNothing(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	name := guesttest.Interface(t, "usb-net")
	if out, err := exec.Command("ip", "link", "set", name, "down").CombinedOutput(); err != nil {
		t.Fatalf("ip link set: %v: %s", err, out)
	}
	// The function of a USB device hangs below the device, which is what is powered.
	function, err := filepath.EvalSymlinks(filepath.Join("/sys/class/net", name, "device"))
	if err != nil {
		t.Fatal(err)
	}
	power := filepath.Join(filepath.Dir(function), "power")
	state := func(file string) string {
		b, err := os.ReadFile(filepath.Join(power, file))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	set := func(file, value string) {
		if err := os.WriteFile(filepath.Join(power, file), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	set("autosuspend_delay_ms", "0")
	set("control", "auto")
	for deadline := time.Now().Add(time.Minute); state("runtime_status") != "suspended"; {
		if time.Now().After(deadline) {
			t.Fatalf("the device does not go to sleep: %s, used by %s", state("runtime_status"), state("runtime_usage"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	// From now on a wake-up leaves it awake.
	set("autosuspend_delay_ms", "600000")
	awake := state("runtime_active_time")

	for _, args := range [][]string{nil, {"--capture", filepath.Join(t.TempDir(), "guest.capture")}} {
		document := inspect(t, args...)
		for _, i := range document["interfaces"].([]any) {
			if dev := i.(map[string]any); dev["name"] == name && dev["asleep"] != true {
				t.Errorf("inspect %q does not say that %s is asleep: %v", args, name, dev)
			}
		}
		if s, a := state("runtime_status"), state("runtime_active_time"); s != "suspended" || a != awake {
			t.Errorf("inspect %q: %s is %s, and has been awake for %s ms instead of %s", args, name, s, a, awake)
		}
	}
	// The test can fail: a tool that asks the driver wakes it.
	if out, err := exec.Command("ethtool", "-i", name).CombinedOutput(); err != nil {
		t.Errorf("ethtool -i: %v: %s", err, out)
	}
	if out, err := exec.Command("ethtool", "-k", name).CombinedOutput(); err != nil {
		t.Errorf("ethtool -k: %v: %s", err, out)
	}
	if s := state("runtime_status"); s != "active" {
		t.Errorf("%s is %s although ethtool asked its driver", name, s)
	}
}

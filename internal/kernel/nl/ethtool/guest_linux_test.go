package ethtool

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

func TestMain(m *testing.M) { guesttest.Main(m) }

// The tests of this package must pass on Debian's kernel too. One of them compares all links of its
// machine with the output of ethtool(8) and ip(8); in the guest these are the emulated NICs.
func TestGuestOtherKernel(t *testing.T) {
	guesttest.Others(t, "^TestNetns")
}

// models are the NICs of a guest.
var models = []string{"e1000", "e1000-82545em", "e1000e", "virtio-net-pci", "vmxnet3"}

// For NICs that are up, ethtool(8) reports the same values of properties that a veth or a tap
// lacks: driver, bus, speed, pause, private flags, counters.
func TestGuestAgreesAboutCards(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c := dialled(t)
	n := 0
	for _, model := range models {
		name := guesttest.Interface(t, model)
		nltest.Must(t, c.SetUp(name))
		n += agree(t, c, name)
		same := func(what, ours, theirs string) {
			t.Helper()
			n++
			if ours != theirs {
				t.Errorf("%s of %s: %q here, %q there", what, model, ours, theirs)
			}
		}
		d, err := c.Driver(name)
		nltest.Must(t, err)
		out, _ := nltest.OtherSays(t, "ethtool", "-i", name)
		info := nltest.Pairs(out)
		same("driver", d.Driver, info["driver"])
		same("version", d.Version, info["version"])
		same("firmware", d.Firmware, info["firmware-version"])
		same("bus", d.Bus, info["bus-info"])

		// A link that comes up negotiates its pauses, so both sides are read until neither changes.
		p, err := c.Pause(name)
		out, ok := nltest.OtherSays(t, "ethtool", "-a", name)
		for again, failed := c.Pause(name); again != p || (failed == nil) != (err == nil); again, failed = c.Pause(name) {
			p, err = again, failed
			out, ok = nltest.OtherSays(t, "ethtool", "-a", name)
		}
		if ok != (err == nil) {
			t.Errorf("pause of %s: here %v, ethtool prints %q", model, err, out)
		}
		if ok {
			same("pause", fmt.Sprint(onOff(p.Autoneg), onOff(p.Rx), onOff(p.Tx)),
				fmt.Sprint(nltest.Pairs(out)["Autonegotiate"], nltest.Pairs(out)["RX"], nltest.Pairs(out)["TX"]))
		}
		flags, err := c.PrivateFlags(name)
		out, ok = nltest.OtherSays(t, "ethtool", "--show-priv-flags", name)
		if ok != (err == nil) {
			t.Errorf("private flags of %s: here %v, ethtool prints %q", model, err, out)
		}
		for flag, value := range nltest.Pairs(out) {
			same("flag "+flag, onOff(flags[flag]), value)
		}
		n += agreeAboutSpeed(t, c, model, name)
		n += agreeAboutCounters(t, c, model, name)
		n += agreeAboutWake(t, c, model, name)
	}
	t.Logf("note: %d values of five NICs agree with ethtool and ip", n)
	if n < 300 {
		t.Errorf("only %d values compared", n)
	}
}

func onOff(b bool) string { return map[bool]string{true: "on", false: "off"}[b] }

// dialled returns a client in the namespace of the process.
func dialled(t *testing.T) world {
	t.Helper()
	c, err := nl.Dial()
	nltest.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return world{c, New(c)}
}

// agreeAboutSpeed compares the negotiated mode. A link may come up between two requests, so both
// sides are read until neither changes.
func agreeAboutSpeed(t *testing.T, c world, model, name string) (n int) {
	t.Helper()
	for {
		speed, duplex, err := c.LinkMode(name)
		out, _ := nltest.OtherSays(t, "ethtool", name)
		again, _, _ := c.LinkMode(name)
		if speed != again {
			continue
		}
		said := nltest.Pairs(out)
		theirs, _ := strconv.ParseFloat(strings.TrimSuffix(said["Speed"], "Mb/s"), 64) // 0 for "Unknown!"
		if speed != theirs*1e6 || theirs != 0 && !strings.EqualFold(duplex, said["Duplex"]) {
			t.Errorf("link of %s: %v bit/s %s, %v here, %s %s there", model, speed, duplex, err, said["Speed"],
				said["Duplex"])
		}
		return 2
	}
}

// agreeAboutWake compares what wakes the host and the message level, and sets both.
func agreeAboutWake(t *testing.T, c world, model, name string) (n int) {
	t.Helper()
	letters := func(bits uint32) (s string) {
		for i, letter := range "pumbagsf" {
			if bits&(1<<i) != 0 {
				s += string(letter)
			}
		}
		return cmp.Or(s, "d")
	}
	agree := func() Wake {
		t.Helper()
		out, _ := nltest.OtherSays(t, "ethtool", name)
		said := nltest.Pairs(out)
		w, err := c.Wake(name)
		if theirs, ok := said["Wake-on"]; ok != (err == nil) || ok && (letters(w.On) != theirs ||
			letters(w.Supported) != said["Supports Wake-on"]) {
			t.Errorf("wake-on-lan of %s: %+v, %v here; %q of %q there", model, w, err, theirs, said["Supports Wake-on"])
		}
		level, err := c.MessageLevel(name)
		theirs, ok := said["Current message level"]
		if hex, _, _ := strings.Cut(theirs, " "); ok != (err == nil) || ok && hex != fmt.Sprintf("%#08x", level) {
			t.Errorf("message level of %s: %#x, %v here; %q there", model, level, err, theirs)
		}
		n += 3
		return w
	}
	before := agree()
	// Intel's drivers list what their cards can do, and refuse it where the board cannot wake.
	magic := before.On ^ 1<<5
	if err := c.SetWake(name, magic); err == nil {
		if w := agree(); w.On != magic {
			t.Errorf("wake-on-lan of %s: set %#x, is %#x", model, magic, w.On)
		}
		nltest.Must(t, c.SetWake(name, before.On))
	} else if model == "vmxnet3" || before.Supported == 0 && !errors.Is(err, nl.ErrNotSupported) {
		t.Errorf("wake-on-lan of %s: %v", model, err)
	}
	if level, err := c.MessageLevel(name); err == nil {
		nltest.Must(t, c.SetMessageLevel(name, level^0x30))
		if now, err := c.MessageLevel(name); err != nil || now != level^0x30 {
			t.Errorf("message level of %s: %#x, %v after %#x", model, now, err, level^0x30)
		}
		nltest.Must(t, c.SetMessageLevel(name, level))
	}
	if after := agree(); after != before {
		t.Errorf("wake-on-lan of %s: %+v, was %+v", model, after, before)
	}
	t.Logf("note: %s wakes by %s of %s", model, letters(before.On), letters(before.Supported))
	return n
}

// agreeAboutCounters compares all counters of a driver. They keep counting, so ethtool's number
// must lie between two readings of this package.
func agreeAboutCounters(t *testing.T, c world, model, name string) (n int) {
	t.Helper()
	before, err := c.Statistics(name)
	nltest.Must(t, err)
	out, _ := nltest.OtherSays(t, "ethtool", "-S", name)
	after, err := c.Statistics(name)
	nltest.Must(t, err)
	for key, value := range nltest.Pairs(out) {
		theirs, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue // a heading
		}
		low, ok := before[key]
		if !ok || theirs < low || theirs > after[key] {
			t.Errorf("%s of %s: here %d, then %d; ethtool prints %d", key, model, low, after[key], theirs)
		}
		n++
	}
	if n != len(before) {
		t.Errorf("counters of %s: here %d, ethtool prints %d", model, len(before), n)
	}
	return n
}

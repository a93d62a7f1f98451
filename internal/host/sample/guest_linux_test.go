package sample_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// What is held on the kernel of this machine is held on Debian's too.
func TestGuestOtherKernel(t *testing.T) {
	guesttest.Others(t, "^(TestNamesComeGoAndChange|TestAgreesWith.*|TestOrdinaryUser)$")
}

// ip runs ip(8), which must succeed.
func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, ok := nltest.OtherSays(t, "ip", args...); !ok {
		t.Fatalf("ip %s: %s", strings.Join(args, " "), out)
	}
}

// Real cards with VLANs and a bond: whose they are, what they carry, which interrupts they have,
// and a card that is pulled out and put back.
func TestGuestCards(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	c, err := nl.Dial()
	nltest.Must(t, err)
	defer func() { _ = c.Close() }()
	card, queued := guesttest.Interface(t, "e1000e"), guesttest.Interface(t, "virtio-net-pci")
	member := guesttest.Interface(t, "e1000")
	for _, name := range []string{card, queued} {
		nltest.Must(t, c.SetUp(name))
	}
	for i := range 3 {
		name := fmt.Sprintf("vlan%d", i+1)
		ip(t, "link", "add", "link", card, "name", name, "type", "vlan", "id", fmt.Sprint(100+i))
		nltest.Must(t, c.SetUp(name))
	}
	ip(t, "link", "add", "bundle", "type", "bond", "mode", "active-backup")
	nltest.Must(t, c.SetMaster(member, "bundle"))
	nltest.Must(t, c.SetUp("bundle"))
	ip(t, "link", "add", "link", "bundle", "name", "bundle.7", "type", "vlan", "id", "7")
	nltest.Must(t, c.SetUp("bundle.7"))
	ip(t, "address", "add", "10.8.1.1/24", "dev", "vlan1")
	ip(t, "address", "add", "10.8.2.1/24", "dev", queued)
	defer func() {
		for _, name := range []string{"vlan1", "vlan2", "vlan3", "bundle.7", "bundle"} {
			_ = c.DeleteLink(name)
		}
	}()
	waitForLink(t, c, card, queued, "bundle")

	s := sampler(t)
	x := sample.NewIndex(read(t, s).Points)
	for _, want := range [][]string{
		{card, "e1000e", "ethernet", ""}, {queued, "virtio_net", "ethernet", ""}, {member, "e1000", "ethernet", ""},
		{"vlan2", "vlan", "vlan", card},
		{"bundle", "bond", "bond", ""}, {"bundle.7", "vlan", "vlan", "bundle"},
	} {
		if _, ok := x.Value("linerate_interface_info", want...); !ok {
			t.Errorf("no interface %q among %v", want, labels(x.Of("linerate_interface_info")))
		}
	}
	for _, name := range []string{card, "vlan1"} {
		if v, _ := x.Value("linerate_interface_speed_bits_per_second", name); v != 1e9 {
			t.Errorf("%s runs at %g bit/s", name, v)
		}
	}
	for _, queue := range []string{"rx-0", "rx-1", "tx-0"} {
		if _, ok := x.Value("linerate_queue_packets_total", queued, queue); !ok {
			t.Errorf("no packets of %s of %s", queue, queued)
		}
		if _, ok := x.Value("linerate_queue_interrupts_total", queued, queue); !ok {
			t.Errorf("no interrupts of %s of %s: %v", queue, queued, labels(x.Of("linerate_queue_interrupts_total")))
		}
	}
	if len(x.Of("linerate_cpu_card_interrupts_total")) != 2 {
		t.Errorf("interrupts of cards on %v", labels(x.Of("linerate_cpu_card_interrupts_total")))
	}

	const datagrams = 200
	broadcast(t, "10.8.1.255:9", datagrams)
	broadcast(t, "10.8.2.255:9", datagrams)
	// Until the card has sent them, and the slower sources are due again.
	for patience := time.Now().Add(3 * time.Minute); ; {
		x = sample.NewIndex(read(t, s).Points)
		sent, _ := x.Value("linerate_interface_transmit_packets_total", card)
		byQueue := x.Sum("linerate_queue_packets_total", queued)
		interrupts := x.Sum("linerate_queue_interrupts_total", card)
		took := x.Sum("linerate_cpu_card_interrupts_total")
		if sent >= datagrams && byQueue >= datagrams && interrupts > 0 && took > 0 {
			break
		}
		if time.Now().After(patience) {
			t.Fatalf("%g packets by the card, %g by queues, %g interrupts, %g on processors: of %d sent", sent, byQueue,
				interrupts, took, datagrams)
		}
	}
	if v, _ := x.Value("linerate_interface_transmit_packets_total", "vlan1"); v < datagrams || v > datagrams+50 {
		t.Errorf("vlan1 sent %g packets, %d datagrams among them", v, datagrams)
	}

	// Pulled out and put back: another interface, most often under the same name, whose counters
	// begin anew.
	mark, _ := x.Value("linerate_interface_transmit_packets_total", queued)
	guesttest.Unplug(t, queued)
	r := read(t, s)
	if got := happened(r); !slices.Contains(got, "link-gone "+queued) {
		t.Errorf("happened: %q", got)
	}
	ended := make(map[string]bool)
	for _, e := range r.Ended {
		if e.Values[0] == queued {
			ended[e.Metric.Name] = true
		}
	}
	for _, name := range []string{"linerate_interface_info", "linerate_queue_packets_total",
		"linerate_queue_interrupts_total", "linerate_interface_receive_bytes_total"} {
		if !ended[name] {
			t.Errorf("%s did not end with its card", name)
		}
	}
	queued = guesttest.Plug(t, "virtio-net-pci")
	r = read(t, s)
	if v, ok := sample.NewIndex(r.Points).Value("linerate_interface_transmit_packets_total", queued); !ok ||
		v != 0 || mark == 0 {
		t.Errorf("%s has %g packets before it was up, and %g as it was", queued, v, mark)
	}
}

// labels returns the labels of points.
func labels(points []sample.Point) (all []string) {
	for _, p := range points {
		all = append(all, strings.Join(p.Series.Values, " "))
	}
	return all
}

// waitForLink waits until interfaces have a carrier: drivers take seconds to find it.
func waitForLink(t *testing.T, c *nl.Client, names ...string) {
	t.Helper()
	for patience := time.Now().Add(3 * time.Minute); ; {
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			l, err := c.LinkByName(name)
			nltest.Must(t, err)
			return l.Carrier
		})
		if len(missing) == 0 {
			return
		}
		if time.Now().After(patience) {
			t.Fatalf("no link on %q", missing)
		}
	}
}

// A card that sleeps is not asked, and stays asleep.
func TestGuestLeavesSleepersAlone(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	name := guesttest.Interface(t, "usb-net")
	device, err := filepath.EvalSymlinks("/sys/class/net/" + name + "/device")
	nltest.Must(t, err)
	device = filepath.Dir(device) // of the interface of the device, the device
	nltest.Must(t, os.WriteFile(device+"/power/control", []byte("auto"), 0))
	nltest.Must(t, os.WriteFile(device+"/power/autosuspend_delay_ms", []byte("0"), 0))
	defer func() { nltest.Must(t, os.WriteFile(device+"/power/control", []byte("on"), 0)) }()
	status := func() string {
		b, err := os.ReadFile(device + "/power/runtime_status")
		nltest.Must(t, err)
		return strings.TrimSpace(string(b))
	}
	for patience := time.Now().Add(3 * time.Minute); status() != "suspended"; {
		if time.Now().After(patience) {
			t.Fatalf("the device does not sleep: %s", status())
		}
	}
	woken, err := os.ReadFile(device + "/power/runtime_active_time")
	nltest.Must(t, err)
	s := sampler(t)
	for range 5 {
		r := read(t, s)
		if _, ok := sample.NewIndex(r.Points).Value("linerate_interface_up", name); !ok {
			t.Errorf("%s has no points while it sleeps", name)
		}
	}
	still, err := os.ReadFile(device + "/power/runtime_active_time")
	nltest.Must(t, err)
	if status() != "suspended" || string(still) != string(woken) {
		t.Errorf("the device is %s and was awake for %s ms, %s ms before", status(), still, woken)
	}
}

// A processor that is taken out of the system ends, and comes back without a leap.
func TestGuestProcessorGoes(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	const online = "/sys/devices/system/cpu/cpu1/online"
	s := sampler(t)
	first := sample.NewIndex(read(t, s).Points)
	nltest.Must(t, os.WriteFile(online, []byte("0"), 0))
	r := read(t, s)
	ended := make(map[string]bool)
	for _, e := range r.Ended {
		ended[e.Metric.Name+" "+strings.Join(e.Values, " ")] = true
	}
	for _, m := range []string{"linerate_cpu_seconds_total 1 idle", "linerate_cpu_softirqs_total 1 net_rx",
		"linerate_softnet_packets_total 1"} {
		if !ended[m] {
			t.Errorf("%s did not end: %v", m, ended)
		}
	}
	if x := sample.NewIndex(r.Points); len(x.Of("linerate_cpu_seconds_total", "1")) > 0 ||
		len(x.Of("linerate_cpu_seconds_total", "0")) != 8 {
		t.Errorf("processors: %v", labels(x.Of("linerate_cpu_seconds_total")))
	}
	nltest.Must(t, os.WriteFile(online, []byte("1"), 0))
	x := sample.NewIndex(read(t, s).Points)
	for _, metric := range []string{"linerate_cpu_seconds_total", "linerate_cpu_softirqs_total",
		"linerate_softnet_packets_total"} {
		if len(x.Of(metric, "1")) != len(first.Of(metric, "1")) || x.Sum(metric, "1") != 0 {
			t.Errorf("%s of the processor that came back: %v", metric, x.Of(metric, "1"))
		}
	}
}

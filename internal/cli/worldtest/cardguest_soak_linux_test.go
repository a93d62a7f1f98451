//go:build linux && soak

package worldtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/kmod"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// cardsSetup makes a server of a namespace, and /cards, which loads the module of both cards with
// parameters: the first of each pair is for the near card. The server's program stays.
const cardsSetup = `
ln /init /usr/bin/linerate
ln /init /usr/bin/insmod
ln /init /usr/bin/rmmod
mkdir -p /run/netns
ip netns add server
ip link set lo up
cat >/at-server <<'X'
exec nsenter --net=/run/netns/server unshare -m sh -c 'mount -t sysfs sysfs /sys; exec "$@"' sh "$@"
X
sh /at-server ip link set lo up
sysctl -qw net.core.rmem_max=8388608
cat >/cards <<'X'
set -e
[ ! -e /sys/module/e1000 ] || rmmod e1000
insmod /modules/e1000.ko "$@"
for n in /sys/class/net/*; do
	read address <$n/address
	case $address in
	%[1]s) ip link set ${n##*/} name near ;;
	%[2]s) ip link set ${n##*/} netns server; server=${n##*/} ;;
	esac
done
sh /at-server ip link set $server name card
ip addr add 10.9.0.2/24 dev near
sh /at-server ip addr add 10.9.0.1/24 dev card
ip link set near up
sh /at-server ip link set card up
until ip link show near | grep -q LOWER_UP && sh /at-server ip link show card | grep -q LOWER_UP; do sleep 0.1; done
X
umask 077
echo '%[3]s' >/key
sh /at-server linerate serve --key-file /key --key-clients 0 >/tmp/serve 2>&1 &
until grep -qs "on the other host" /tmp/serve; do sleep 0.1; done
`

// guestCommands are programs that the guest lacks.
func guestCommands() map[string]func() {
	end := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	return map[string]func(){
		"rmmod": func() { end(kmod.Unload(os.Args[1])) },
		"insmod": func() {
			f, err := os.Open(os.Args[1])
			if err == nil {
				err = unix.FinitModule(int(f.Fd()), strings.Join(os.Args[2:], " "), 0)
			}
			end(err)
		},
	}
}

// cardGuest boots a guest with two cards of one model of e1000 on a wire. Their module is not
// loaded yet. The clock of the guest counts its instructions, so that nothing depends on the
// machine.
func cardGuest(t *testing.T, model string) diskGuest {
	t.Helper()
	testenv.Need(t, testenv.Soak, testenv.Guest)
	d := bootGuest(t, guest.Options{CPUs: 1, Counted: true, MemoryBytes: 512 << 20,
		Cards:   []guest.Card{{Model: model, Wire: 1}, {Model: model, Wire: 1}},
		Modules: []string{"af_packet", "e1000"},
		Programs: []string{"sh", "cat", "ip", "ln", "mkdir", "sleep", "grep", "nsenter", "unshare", "mount", "ethtool",
			"sysctl"}})
	d.sh(fmt.Sprintf(cardsSetup, guest.CardAddress(0), guest.CardAddress(1), wire.NewKey()))
	return d
}

// measured runs one test from the near card to the server.
func (d diskGuest) measured(args string) traffic.Result {
	d.t.Helper()
	status, out, errw := d.run("linerate measure 10.9.0.1 --key-file /key --no-store --json " + args)
	var doc report.MeasureDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 && status != 3 || len(doc.Tests) != 1 {
		d.t.Fatalf("exit status %d, %v\n%s%s", status, err, out, errw)
	}
	if err := reporttest.Validate([]byte(out)); err != nil {
		d.t.Error(err)
	}
	return doc.Tests[0]
}

// ladder are the rates of the write-up, and two below them. The last is off: the driver then writes
// no rate, and QEMU's card, unlike a real one, keeps the rate of the load before through a reset.
var ladder = []int{100, 250, 1000, 2000, 4000, 8000, 16000, 3, 1, unthrottled, 0}

// unthrottled is the highest rate that the driver takes, more than any end interrupts here.
const unthrottled = 100_000

// TestThrottleLadder climbs the throttle of real e1000 drivers, at the near end alone and at both,
// by loading the module. A throttled end interrupts no more often than its rate, so that no more
// transactions pass; without a throttle more pass. It logs the table.
func TestThrottleLadder(t *testing.T) {
	d := cardGuest(t, "e1000-82545em")
	type step struct{ one, both float64 }
	steps := map[int]step{}
	at := func(near, far int) float64 {
		d.sh(fmt.Sprintf("sh /cards InterruptThrottleRate=%d,%d TxIntDelay=0,0", near, far))
		r := d.measured("--test rr --duration 1s --warm-up 300ms")
		return r.TransactionsPerSec
	}
	var table strings.Builder
	for _, rate := range ladder {
		s := step{at(rate, unthrottled), at(rate, rate)}
		steps[rate] = s
		fmt.Fprintf(&table, "| %d | %.0f | %.0f |\n", rate, s.one, s.both)
	}
	t.Logf("InterruptThrottleRate, transactions per second with one end and with both:\n%s", &table)
	// One interrupt brings one message. A tenth more is for those that arrive while a poll runs.
	free := steps[unthrottled].both
	for _, rate := range []int{100, 250} {
		s, most := steps[rate], 1.1*float64(rate)
		if s.one > most || s.both > most {
			t.Errorf("%d interrupts a second, and %.0f and %.0f transactions", rate, s.one, s.both)
		}
		if s.both > s.one {
			t.Errorf("at %d: more with both ends throttled (%.0f) than with one (%.0f)", rate, s.both, s.one)
		}
		if free < 2*s.one || free < 2*s.both {
			t.Errorf("without a throttle %.0f transactions, at %d %.0f and %.0f", free, rate, s.one, s.both)
		}
	}
	if a, b := steps[100], steps[250]; a.one >= b.one || a.both >= b.both {
		t.Errorf("the rate rises and the transactions do not: %+v, %+v", a, b)
	}
}

// TestHiddenThrottle loads the 82540EM, whose throttle ethtool cannot read, with throttles at the
// near end, the far end and both. Diagnose names them from the times and the interrupts alone, at
// the end that holds back longer. QEMU's card waits for 128 µs at least (500 units of 256 ns in its
// model) and so has no row without a throttle; TestNoHiddenThrottle has a card without that floor.
func TestHiddenThrottle(t *testing.T) {
	d := cardGuest(t, "e1000")
	var table strings.Builder
	for _, c := range []struct {
		near, far int
		where     string
	}{
		{500, unthrottled, "near"}, {unthrottled, 500, "far"}, {500, 500, "near far"}, {250, 250, "near far"},
		{1000, unthrottled, "near"}, {unthrottled, 1000, "far"}, {1000, 1000, "near far"},
		{unthrottled, 2000, "far"}, {500, 2000, "near"},
	} {
		rate, found := d.hiddenThrottle(c.near, c.far)
		fmt.Fprintf(&table, "| %d | %d | %.0f | %s |\n", c.near, c.far, rate, found.Title)
		if found.Where == "" || !strings.Contains(c.where, found.Where) {
			t.Errorf("%d,%d: named at %q, want %s: %s", c.near, c.far, found.Where, c.where, found.Title)
		}
	}
	t.Logf("near, far, transactions per second, moderation:\n%s", &table)
}

// TestNoHiddenThrottle is the control of TestHiddenThrottle.
func TestNoHiddenThrottle(t *testing.T) {
	d := cardGuest(t, "e1000,mitigation=off")
	if rate, found := d.hiddenThrottle(500, 500); found.Where != "" || rate < 5000 {
		t.Errorf("%.0f transactions a second, and %+v", rate, found)
	}
}

// hiddenThrottle loads the cards with these rates, and returns the transactions per second and what
// diagnose says of a throttle; a zero finding: nothing.
func (d diskGuest) hiddenThrottle(near, far int) (rate float64, found evidence.Finding) {
	d.t.Helper()
	d.sh(fmt.Sprintf("sh /cards InterruptThrottleRate=%d,%d TxIntDelay=0,0", near, far))
	_, out, errw := d.run("linerate diagnose 10.9.0.1 --key-file /key --json")
	var doc report.DiagnoseDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		d.t.Fatalf("%d,%d: %v\n%s%s", near, far, err, out, errw)
	}
	for _, f := range doc.Findings {
		if f.Code == evidence.InterruptModerationLatency {
			found = f
		}
	}
	for _, r := range doc.Tests {
		if r.Test == traffic.RR {
			rate = r.TransactionsPerSec
		}
	}
	return rate, found
}

// TestBurstOnCardRing sends growing trains into a ring of few descriptors that is emptied late: the
// first loss comes where the ring ends, and is named.
func TestBurstOnCardRing(t *testing.T) {
	d := cardGuest(t, "e1000-82545em")
	for _, ring := range []int{80, 160} {
		d.sh(fmt.Sprintf("sh /cards RxDescriptors=256,%d InterruptThrottleRate=0,100 TxIntDelay=0,0", ring))
		d.sh("sh /at-server ethtool -g card | grep -q 'RX:.*" + fmt.Sprint(ring) + "'")
		b := d.measured("--test burst --length 200 --bytes 200k --window 2M").Burst
		t.Logf("ring %d: held %d, lost at %d at %q, losses %v, bounds %+v, trains %v", ring, b.HeldPackets,
			b.LostAtPackets, b.Place, b.Losses, b.Bounds, b.Trains)
		bound, ok := b.At(drops.ReceiverRing)
		if !ok || bound.Packets != uint64(ring) || bound.Interface != "card" {
			t.Errorf("ring %d: the bound %+v", ring, bound)
		}
		// The card keeps one descriptor free. The first frame of a train interrupts at once, and the
		// poll takes what has come until then.
		if b.Place != drops.ReceiverRing || b.HeldPackets < uint64(ring)-1 || b.LostAtPackets > uint64(ring)+poll {
			t.Errorf("ring %d: held %d, lost at %d at %q", ring, b.HeldPackets, b.LostAtPackets, b.Place)
		}
		t.Log(d.sh(fmt.Sprintf("linerate calc burst --ring %d --link 1G --interval 10ms --mtu 228", ring)))
	}
}

// poll is how many frames a driver takes at once (NAPI_POLL_WEIGHT).
const poll = 64

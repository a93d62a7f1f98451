//go:build linux && soak

package main_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/lab/guest"
)

// someSteps are the steps of a reload at which the power is cut; allSteps are all that there are.
// LINERATE_POWER_CUTS=all chooses these: each costs a boot.
var (
	someSteps = []string{"unloaded", "loaded and noted", "returned"}
	allSteps  = []string{"noted", "unloaded", "loaded", "loaded and noted", "named", "dressed", "up", "returned", "tuned",
		"done"}
)

// TestReloadChild is the program in the guest that loads a module anew and stops after a step.
// Without RELOAD_UNTIL it does nothing.
func TestReloadChild(t *testing.T) {
	until := os.Getenv("RELOAD_UNTIL")
	if until == "" {
		return
	}
	host := live.New()
	host.OnReload(func(step string) {
		if step == until {
			if err := os.WriteFile("/run/reached", nil, 0o600); err != nil {
				t.Error(err)
			}
			time.Sleep(24 * time.Hour) // the power is cut
		}
	})
	j, err := journal.Open(journal.Options{Dir: "/var/lib/linerate", Backend: host, Catalog: knob.Catalogue(),
		Unguarded: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	_, err = j.Apply(t.Context(), journal.Request{Reason: "the power will be cut"},
		knob.Setting{Knob: "module:e1000/InterruptThrottleRate", Value: "3000,8000"})
	t.Fatalf("the reload has no step %q: %v", until, err)
}

// cardsHave is what programs of the system show of both cards, once these have their addresses.
const cardsHave = `for i in enp0s2 enp0s3; do
		until ip -4 addr show $i | grep -q inet && [ "$(cat /sys/class/net/$i/carrier)" = 1 ]; do sleep 0.5; done
		while ip addr show $i | grep -q tentative; do sleep 0.5; done
		ip link show $i | sed 's/^[0-9]*: //'
		ip addr show $i | sed -n 's/^ *\(inet6* [^ ]*\).*/\1/p'
		tc qdisc show dev $i; ethtool -c $i; ethtool -g $i; ethtool -a $i; ethtool -k $i
		ethtool $i | grep 'Wake-on\|message level'
		sysctl net.ipv4.conf.$i net.ipv6.conf.$i 2>/dev/null | grep -v stable_secret
	done
	{ ip route; ip -6 route | sed 's/ expires [0-9a-z]*//'; } | sort`

// throttled is how often each card interrupts at most.
const throttled = `for i in enp0s2 enp0s3; do ethtool -c $i | grep ^rx-usecs: | tr -d '\t '; done`

// TestReloadPowerCut cuts the power of a host with systemd, udev, ifupdown and NetworkManager while
// the module of both its cards is loaded anew. After the boot, recovery closes the journal, and the
// cards have what they had: without parameters, and with those that a change before has persisted.
func TestReloadPowerCut(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	h := newHost(t, time.Duration(len(allSteps)+2)*stepPatience)
	h.cards = []guest.Card{{Model: "e1000-82545em"}, {Model: "e1000-82545em"}}
	steps := someSteps
	if os.Getenv("LINERATE_POWER_CUTS") == "all" {
		steps = allSteps
	}
	h.boot(append([]guest.File{program(t), asker(t)}, settings...)...)
	h.sh("linerate recover --install; sync # the program itself was installed long ago")
	plain := h.sh(cardsHave)
	h.says(throttled, "rx-usecs:3", "rx-usecs:3")
	want := plain
	for i, step := range steps {
		h.sh("systemd-run --quiet --unit=reload -E 'RELOAD_UNTIL=" + step + "' -E PATH=$PATH ask " +
			"-test.run='^TestReloadChild$' -test.timeout=0\n" +
			"until [ -e /run/reached ]; do sleep 0.3; ! systemctl is-failed --quiet reload || " +
			"{ journalctl -b -u reload --no-pager; false; }; done")
		h.cut()
		h.boot()
		h.passed("power cut after " + step)
		h.says("systemctl show -p Result,ActiveState linerate-recover; linerate recover", "Result=success",
			"ActiveState=inactive", "nothing to recover")
		h.sameCards(want, "after a power cut at the step "+step)
		h.says("ls /run/linerate 2>/dev/null | grep module- || true")
		open := `linerate history --json | grep -o '"state":"[a-z]*"' | sort | uniq -c | tr -s ' '`
		if i == 0 {
			h.says(open, `1 "state":"undone"`)
			// The ordinary way: changed, persisted, and from now on the state to come back to.
			h.sh("linerate set --allow d4 --yes module:e1000/InterruptThrottleRate=2000,4000 && linerate persist")
			h.says(throttled, "rx-usecs:500", "rx-usecs:250")
			h.passed("changed and persisted")
			want = h.sh(cardsHave)
			if diff := different(plain, want); len(diff) != 4 {
				t.Errorf("the parameter changes more than the throttle of both cards: %q", diff)
			}
			continue
		}
		h.says(throttled, "rx-usecs:500", "rx-usecs:250")
	}
	h.sh("linerate undo --all")
	h.sameCards(plain, "after undo")
	h.reboot()
	h.sameCards(plain, "after undo and a restart")
	h.says("linerate recover; cat /etc/modprobe.d/*linerate* 2>/dev/null || true", "nothing to recover")
}

// sameCards compares the cards.
func (h *host) sameCards(want, when string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.sh(cardsHave)); diff != "" {
		h.t.Errorf("the cards %s (-want +got):\n%s", when, diff)
	}
}

package main_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/peer/order"
)

// person is the key of a person whose orders the guest takes.
func person(name string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name[:1]), ed25519.SeedSize))
}

// verbs are those of orders, in the order in which they come.
var verbs = []order.Verb{order.Try, order.Commit, order.Persist, order.Undo}

// deadlines are those of the trials in seconds: an even one has to pass, and an odd one must not.
var deadlines = [2]int64{20, 300}

// TestOrderChild is the program that hands orders to an agent in the guest, as a node does: each
// word of ORDER is VERB.NUMBER of a change of tcp_sack, and ann and bob have signed it. It prints
// the answers.
func TestOrderChild(t *testing.T) {
	words := strings.Fields(os.Getenv("ORDER"))
	if len(words) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience/3)
	defer cancel()
	start, err := strconv.ParseInt(os.Getenv("ORDER_SINCE"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	c := agent.NewClient(agent.DefaultSocket)
	defer c.Close()
	for _, w := range words {
		verb, number, _ := strings.Cut(w, ".")
		// The same words are the same order, to the byte, in a later call.
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		serial := 100*uint64(start) + 10*n + uint64(slices.Index(verbs, order.Verb(verb)))
		o := order.Order{ID: verb + number, Rollout: "r1", Host: "guest", Verb: order.Verb(verb), Of: "try" + number,
			Epoch: 1, Serial: serial, Knob: knob.ID("sysctl:net.ipv4.tcp_sack"), Expect: "1", To: "0",
			NotBefore: start - 3600, NotAfter: start + 3600}
		if o.Verb == order.Try {
			o.Of, o.Deadline = "", deadlines[n%2]
		}
		payload, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		e := order.Envelope{Payload: payload}
		e.Sign("ann", person("ann"))
		e.Sign("bob", person("bob"))
		data, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Order(ctx, data)
		fmt.Println(verb+":", a.Code, a.Text, err)
	}
}

// orders starts the agent with orders by the unit that is shipped, in the sandbox of which its
// guard has to come, and hands orders to it from a unit without rights: a trial that the guard
// takes back after the service was killed, and a change that is kept, made permanent and undone.
func (h *host) orders() {
	h.t.Helper()
	h.ship("systemd/linerate-orders.service", "/etc/systemd/system")
	h.ship("systemd/linerate-orders-persist.conf", "/etc/systemd/system/linerate-orders.service.d")
	var keys string
	for _, name := range []string{"ann", "bob"} {
		public := person(name).Public().(ed25519.PublicKey)
		keys += name + " " + base64.StdEncoding.EncodeToString(public) + "\n"
	}
	h.sh(fmt.Sprintf(`mkdir -p /etc/linerate; cd /etc/linerate; echo guest >host.id
		printf '%%s' '%s' >order.keys
		printf 'version: 1\nchanges:\n  allow: ["sysctl:net.ipv4.tcp_sack"]\n  persist: on\n' >policy.yaml
		linerate agent --orders --check
		rm -rf /var/lib/linerate; sysctl -qw net.ipv4.tcp_sack=1
		systemctl daemon-reload; rm -f /run/linerate/agent.sock; systemctl start linerate-orders
		until [ -S /run/linerate/agent.sock ]; do sleep 0.3; ! systemctl is-failed --quiet linerate-orders; done`, keys))
	since := strings.TrimSpace(h.sh("date +%s"))
	ask := func(words string) string {
		return "systemd-run --quiet --pipe --wait -p DynamicUser=yes -p PrivateUsers=yes -p SupplementaryGroups=linerate " +
			"-p WorkingDirectory=/ -E ORDER_SINCE=" + since + " -E 'ORDER=" + words + "' ask -test.run=^TestOrderChild$ | grep :"
	}
	// linerate refuses a guard that an overloaded emulator keeps from answering, and changes nothing.
	try := func(n int) int {
		for ; ; n += 2 {
			word := fmt.Sprintf("try.%d", n)
			got := strings.TrimSpace(h.sh(ask(word)))
			if strings.Contains(got, "guard") {
				h.t.Logf("no verdict: %s", got)
				continue
			}
			if got != "try: trial  <nil>" {
				h.t.Fatalf("%s: %s", word, got)
			}
			return n
		}
	}
	first := try(2)
	h.sh("systemctl kill --signal=KILL linerate-orders; until [ $(sysctl -n net.ipv4.tcp_sack) = 1 ]; do sleep 1; done")
	// The timer of the guard takes the trial back where an emulator keeps the guard waiting.
	h.says("until systemctl is-active --quiet linerate-orders; do sleep 1; done; "+ask(fmt.Sprintf("try.%d", first))+
		" | sed 's/by recovery:/by guard:/'", "try: reverted undone by guard: deadline passed <nil>")
	second := try(first + 1)
	h.says(ask(fmt.Sprintf("commit.%d persist.%[1]d", second)), "commit: committed  <nil>", "persist: persisted  <nil>")
	h.says("sysctl -n net.ipv4.tcp_sack; cat /etc/sysctl.d/90-linerate-*.conf | grep '^net'", "0",
		"net.ipv4.tcp_sack = 0")
	h.says(ask(fmt.Sprintf("undo.%d", second))+"; sysctl -n net.ipv4.tcp_sack; ls /etc/sysctl.d | grep linerate || true",
		"undo: undone  <nil>", "1")
	h.says("systemctl stop linerate-orders; systemctl show -p Result linerate-orders", "Result=success")
	h.sh("rm -r /etc/linerate /etc/systemd/system/linerate-orders.service*; systemctl daemon-reload")
	h.passed("orders")
}

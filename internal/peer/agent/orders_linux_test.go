package agent

import (
	"crypto/ed25519"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

// TestOrders hands orders over the socket: the agent carries out what a person has signed, answers
// the same again, reports it, and takes nothing where root has not asked for orders.
func TestOrders(t *testing.T) {
	const rmem = "sysctl:net.core.rmem_max"
	seed := []byte(strings.Repeat("k", ed25519.SeedSize))
	key := ed25519.NewKeyFromSeed(seed)
	dir := filepath.Join(t.TempDir(), "state")
	knobs := knob.NewMemory(map[knob.ID]knob.Value{rmem: "200000"})
	orders := executor.New(executor.Config{
		Host: "h1", State: dir, Read: knobs.Read, BootID: func() (string, error) { return "boot", nil },
		Keys: func() (order.Keys, error) { return order.Keys{"ann": key.Public().(ed25519.PublicKey)}, nil },
		Policy: func() (policy.Policy, error) {
			return policy.Parse([]byte("version: 1\nchanges:\n  allow: [\"sysctl:net.core.*\"]\n"))
		},
		Open: func() (*journal.Journal, error) {
			return journal.Open(journal.Options{Dir: dir, Unguarded: true, BootID: "boot", Mode: journal.Deadline,
				Backend: knobs, Catalog: knob.Catalogue(), Identify: func(knob.ID) journal.Identity { return journal.Identity{} }})
		},
	})
	socket := socketIn(t)
	serving(t, Config{Socket: socket, Version: "v", Local: Local{Dir: dir}, Orders: orders})
	c := dial(t, socket)
	now := time.Now()
	o := order.Order{ID: "o1", Rollout: "r1", Host: "h1", Verb: order.Try, Epoch: 1, Serial: 1, Knob: rmem,
		Expect: "200000", To: "300000", NotBefore: now.Add(-time.Minute).Unix(), NotAfter: now.Add(time.Hour).Unix(),
		Deadline: 300, Reason: strings.Repeat("long ", 100)}
	payload, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	envelope := order.Envelope{Payload: payload}
	unsigned, err := envelope.Encode()
	if err != nil {
		t.Fatal(err)
	}
	envelope.Sign("ann", key)
	signed, err := envelope.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.Order(t.Context(), unsigned); err != nil || a.Code != order.TooFewKeys {
		t.Errorf("without a signature: %+v, %v", a, err)
	}
	for range 2 {
		if a, err := c.Order(t.Context(), signed); err != nil || a.Code != order.InTrial {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if r, err := c.Orders(t.Context(), "r1"); err != nil || r.Host != "h1" || r.Epoch != 1 || len(r.Orders) != 1 ||
		r.Orders[0].Answer.Code != order.InTrial {
		t.Errorf("%+v, %v", r, err)
	}
	if changes, err := c.History(t.Context()); err != nil || len(changes) != 1 || changes[0].State != journal.Trial {
		t.Errorf("%+v, %v", changes, err)
	}
	if a, err := c.Order(t.Context(), []byte("{}")); err != nil || a.Code != order.NotAnOrder {
		t.Errorf("no order: %+v, %v", a, err)
	}

	other := socketIn(t)
	serving(t, Config{Socket: other, Version: "v", Local: Local{Dir: dir}})
	if a, err := dial(t, other).Order(t.Context(), signed); err == nil || !strings.Contains(err.Error(), "--orders") {
		t.Errorf("an agent without orders: %+v, %v", a, err)
	}
}

// TestLongQuestions: only an order may be longer than 256 bytes.
func TestLongQuestions(t *testing.T) {
	for line, ok := range map[string]bool{
		`{"ask":"orders","id":"r1"}`:                                     true,
		`{"ask":"orders"}`:                                               true,
		`{"ask":"order"}`:                                                false,
		`{"ask":"hello","order":"AAAA"}`:                                 false,
		`{"ask":"order","id":"x","order":"AAAA"}`:                        false,
		`{"ask":"orders","id":"../x"}`:                                   false,
		`{"ask":"order","order":"` + strings.Repeat("AAAA", 1000) + `"}`: true,
		`{"ask":"order","order":"` + strings.Repeat("AAAA", 2000) + `"}`: false,
		`{"ask":"hello"` + strings.Repeat(" ", 300) + `}`:                false,
	} {
		if _, err := parseQuestion([]byte(line)); (err == nil) != ok {
			t.Errorf("%.60s: %v", line, err)
		}
	}
}

package desk

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/internal/base/durable"
)

// TestRemovedHalfWay: a host that the register has removed is out of the bus, also where the hub
// died before it wrote that to the claims, or the servers could not be reached the first time.
func TestRemovedHalfWay(t *testing.T) {
	d := start(t, options(t))
	address, token := invite(t, d.o.Dir, Request{Uses: 1})
	home, err := join.Prepare(durable.OS(), filepath.Join(t.TempDir(), "a"), address, token)
	if err == nil {
		err = home.Ask(t.Context(), join.About{Name: "a"})
	}
	if err != nil {
		t.Fatal(err)
	}
	d.stop()
	register, err := member.Open(member.Options{FS: durable.OS(), Dir: filepath.Join(d.o.Dir, registerDir)})
	if err != nil {
		t.Fatal(err)
	}
	_, removed, err := register.Decide(home.ID, member.Removed, "sold")
	if err != nil {
		t.Fatal(err)
	}
	if err := register.Close(); err != nil {
		t.Fatal(err)
	}
	again := start(t, d.o)
	if !again.trust.Revoked(removed.Key) {
		t.Error("the hub was killed in the middle, and the bus still lets a removed host in")
	}
	again.stop()

	// Nothing listens at the servers of this one.
	trust, err := bus.OpenTrust(durable.OS(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	hub, err := bus.Attach(bus.Options{Trust: trust, URLs: []string{"tls://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	cut := &Desk{trust: trust, hub: hub, hosts: inventory.NewStore(), seen: make(map[string]time.Time)}
	if cut.register, err = member.Open(member.Options{FS: durable.OS(), Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	defer cut.register.Close()
	for n := range 2 {
		if err := cut.admit(removed); err == nil {
			t.Errorf("attempt %d: removed, and no server knows it", n+1)
		}
	}
}

// TestReportBound: a report of a host that lies takes little memory.
func TestReportBound(t *testing.T) {
	long := `{"host":"a","orders":[` + strings.Repeat("{},", mostOrders) + `{}]}`
	if _, err := decodeReport([]byte(long)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%d orders: %v", mostOrders+1, err)
	}
	if r, err := decodeReport([]byte(`{"host":"a","epoch":7,"orders":[{"order":"x"}]}`)); err != nil || r.Epoch != 7 ||
		len(r.Orders) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

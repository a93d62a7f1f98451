package join

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/internal/base/durable"
)

// hub is the joining half of a hub.
type hub struct {
	register  *member.Registry
	trust     *bus.Trust
	authority *bus.Authority
	address   string

	ahead    atomic.Int64 // of the clock of the register
	mu       sync.Mutex
	admitted []member.Member
}

func start(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	var err error
	dir := t.TempDir()
	if h.trust, err = bus.OpenTrust(durable.OS(), filepath.Join(dir, "keys")); err != nil {
		t.Fatal(err)
	}
	if h.authority, err = bus.OpenAuthority(durable.OS(), filepath.Join(dir, "tls"), time.Now()); err != nil {
		t.Fatal(err)
	}
	if h.register, err = member.Open(member.Options{FS: durable.NewMem(), Dir: "/fleet",
		Now: func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }}); err != nil {
		t.Fatal(err)
	}
	h.serve(t)
	return h
}

func (h *hub) serve(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.address = l.Addr().String()
	s := NewServer(Options{Register: h.register, Trust: h.trust, Authority: h.authority,
		Admit: func(m member.Member) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.admitted = append(h.admitted, m)
			return nil
		},
		Bus: []string{"tls://:4443", "tls://other.example:1"}, Roots: h.authority.PEM, ServerName: bus.ServerName})
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
}

func (h *hub) invite(t *testing.T, i member.Invitation) member.Token {
	t.Helper()
	i.Uses = 10
	_, token, err := h.register.Invite(i, time.Hour, h.authority.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func prepare(t *testing.T, h *hub, token member.Token) (*Home, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "node")
	home, err := Prepare(durable.OS(), dir, h.address, token)
	if err != nil {
		t.Fatal(err)
	}
	return home, dir
}

func TestJoin(t *testing.T) {
	h := start(t)
	home, dir := prepare(t, h, h.invite(t, member.Invitation{Groups: []string{"web"}}))
	if err := home.Ask(t.Context(), About{Machine: "m1", Name: "web\x1b[31m 1.example"}); err != nil {
		t.Fatal(err)
	}
	i, err := h.trust.Verify(home.Identity)
	if err != nil || i.ID != home.ID || len(i.Groups) != 1 {
		t.Errorf("identity: %+v, %v", i, err)
	}
	if m, _ := h.register.Get(home.ID); m.Name != "web31m1.example" || m.Fingerprint() != home.Fingerprint() ||
		m.From != "127.0.0.1" {
		t.Errorf("member: %+v", m)
	}
	host, _, _ := net.SplitHostPort(h.address)
	if s := strings.Join(home.Servers(), " "); s != "tls://"+host+":4443 tls://other.example:1" {
		t.Errorf("servers: %s", s)
	}
	if d := home.RenewIn(); d < 15*time.Hour || d > 16*time.Hour {
		t.Errorf("renew in %v, want 16 hours", d)
	}
	for _, name := range []string{keyFile, homeFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, want mode 0600", name, err)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, homeFile)); strings.Contains(string(b), "lr1.") {
		t.Error("the secret of the invitation is still on disk")
	}
	// The next process has the same membership, and renews it.
	again, err := Open(durable.OS(), dir)
	if err != nil || again.ID != home.ID {
		t.Fatal(err)
	}
	if err := again.Ask(t.Context(), About{Machine: "m1"}); err != nil || again.ID != home.ID {
		t.Errorf("renew: %v", err)
	}
	if _, err := Prepare(durable.OS(), dir, h.address, h.invite(t, member.Invitation{})); err == nil {
		t.Error("a member prepared to join again")
	}
	if err := again.Leave(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(durable.OS(), dir); !errors.Is(err, ErrNotJoined) {
		t.Errorf("after leaving: %v, want ErrNotJoined", err)
	}
}

// TestLeavesMeanwhile removes the membership at each operation with which a node keeps an answer of
// the hub: the answer does not bring it back.
func TestLeavesMeanwhile(t *testing.T) {
	h := start(t)
	for at := 0; ; at++ {
		disk, began, left := durable.NewMem(), -1, false
		home, err := Prepare(disk, "/node", h.address, h.invite(t, member.Invitation{}))
		if err != nil {
			t.Fatal(err)
		}
		other := *home
		home.fsys = durable.NewFaulty(disk, func(op durable.Op) error {
			if began < 0 {
				began = op.N
			}
			if op.N-began == at {
				left = true
				return other.Leave()
			}
			return nil
		})
		err = home.Ask(t.Context(), About{Machine: fmt.Sprint("machine-", at)})
		if !left { // the last operation was before
			if err != nil || at < 4 {
				t.Errorf("%d operations: %v", at, err)
			}
			return
		}
		if _, open := Open(disk, "/node"); !errors.Is(open, ErrNotJoined) {
			t.Errorf("left at operation %d: %v, and then %v", at, err, open)
		}
	}
}

func TestRefused(t *testing.T) {
	h, other := start(t), start(t)
	token := h.invite(t, member.Invitation{})
	// The hub at the address is not the one of the invitation: the secret is not sent.
	home, _ := prepare(t, other, token)
	if err := home.Ask(t.Context(), About{}); !errors.Is(err, bus.ErrOtherHub) {
		t.Errorf("another hub: %v, want ErrOtherHub", err)
	}
	// Approval by hand: refused for now, the same host asks until a person decides.
	waiting, dir := prepare(t, h, h.invite(t, member.Invitation{Approve: true}))
	refusal := func(err error) *member.Refusal {
		t.Helper()
		r, ok := errors.AsType[*member.Refusal](err)
		if !ok {
			t.Fatalf("%v is no refusal", err)
		}
		return r
	}
	if r := refusal(waiting.Ask(t.Context(), About{Machine: "m1"})); !r.Retry {
		t.Errorf("waiting: %+v", r)
	}
	waiting, err := Open(durable.OS(), dir) // the process ended meanwhile
	if err != nil {
		t.Fatal(err)
	}
	if r := refusal(waiting.Ask(t.Context(), About{Machine: "m1"})); !r.Retry {
		t.Errorf("still waiting: %+v", r)
	}
	if _, _, err := h.register.Decide(h.register.Members()[0].ID, member.Joined, ""); err != nil {
		t.Fatal(err)
	}
	if err := waiting.Ask(t.Context(), About{Machine: "m1"}); err != nil || waiting.Identity == "" {
		t.Errorf("approved: %v", err)
	}
	// A stolen identity without its key renews nothing.
	thief, _ := prepare(t, h, token)
	thief.Identity = waiting.Identity
	if r := refusal(thief.Ask(t.Context(), About{})); r.Retry || !strings.Contains(r.Reason, "does not know this key") {
		t.Errorf("a stolen identity: %+v", r)
	}
	// Nor does a signature of another session.
	public, _ := waiting.key.Public()
	q := question{Op: opRenew, Key: public, Identity: waiting.Identity}
	c, err := tls.Dial("tcp", h.address, bus.Pinned(h.authority.Fingerprint, nil))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := proof(c.ConnectionState(), q)
	c.Close()
	if q.Signature, err = waiting.key.Sign(text); err != nil {
		t.Fatal(err)
	}
	c, err = tls.Dial("tcp", h.address, bus.Pinned(h.authority.Fingerprint, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, _ := json.Marshal(q)
	if _, err := c.Write(append(b, '\n')); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := readLine(c, longestAnswer, &a); err != nil || !strings.Contains(a.Refusal, "signature") {
		t.Errorf("a signature of another session: %+v, %v", a, err)
	}
}

// TestRotate: a new key works, the old one does not, and a lost answer is made good.
func TestRotate(t *testing.T) {
	h := start(t)
	home, dir := prepare(t, h, h.invite(t, member.Invitation{}))
	about := About{Machine: "m1", Name: "a"}
	if err := home.Ask(t.Context(), about); err != nil {
		t.Fatal(err)
	}
	before, old := home.Fingerprint(), *home
	if err := home.Rotate(t.Context(), about); err != nil {
		t.Fatal(err)
	}
	if home.Fingerprint() == before || home.ID != old.ID {
		t.Errorf("rotated: fingerprint %s, before %s", home.Fingerprint(), before)
	}
	h.mu.Lock()
	ended := false
	for _, m := range h.admitted {
		ended = ended || m.State == member.Removed && m.Fingerprint() == before
	}
	h.mu.Unlock()
	if !ended {
		t.Error("the old key was not ended at the bus")
	}
	// Another one at once is refused for now: each makes the log and the list of revoked keys longer.
	err := home.Rotate(t.Context(), about)
	if r, ok := errors.AsType[*member.Refusal](err); !ok || !r.Retry || !strings.Contains(r.Reason, "new key") {
		t.Errorf("a second new key at once: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, nextFile)); err != nil {
		t.Fatal(err)
	}
	h.ahead.Store(int64(11 * time.Minute))
	// The hub took the next key and its answer was lost: the host has both keys, and the hub only
	// the next.
	next, _ := bus.NewKey()
	if err := next.Write(durable.OS(), filepath.Join(dir, nextFile)); err != nil {
		t.Fatal(err)
	}
	now, _ := home.key.Public()
	nextPublic, _ := next.Public()
	if _, err := h.register.Rotate(now, nextPublic, "m1"); err != nil {
		t.Fatal(err)
	}
	again, err := Open(durable.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Ask(t.Context(), about); err != nil {
		t.Fatal(err)
	}
	if again.Fingerprint() != member.Fingerprint(nextPublic) || again.rotating() {
		t.Error("the change of keys was not finished")
	}
}

// TestRestored: a hub that lost its register takes its hosts back, but no revoked one.
func TestRestored(t *testing.T) {
	h := start(t)
	token := h.invite(t, member.Invitation{Groups: []string{"web"}})
	good, _ := prepare(t, h, token)
	bad, _ := prepare(t, h, token)
	for i, home := range []*Home{good, bad} {
		if err := home.Ask(t.Context(), About{Machine: string(rune('a' + i)), Name: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	public, _ := bad.key.Public()
	if err := h.trust.Revoke(public, time.Now(), KeepRevocations); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.register, err = member.Open(member.Options{FS: durable.NewMem(), Dir: "/fleet"}); err != nil {
		t.Fatal(err)
	}
	h.serve(t)
	good.Hub, bad.Hub = h.address, h.address
	id := good.ID
	if err := good.Ask(t.Context(), About{Machine: "a", Name: "x"}); err != nil || good.ID != id {
		t.Errorf("a member: %v", err)
	}
	if m, ok := h.register.Get(id); !ok || len(m.Groups) != 1 {
		t.Errorf("restored as %+v", m)
	}
	if err := bad.Ask(t.Context(), About{Machine: "b"}); err == nil {
		t.Error("a revoked host was restored")
	}
}

// TestSilent: connections that say nothing do not keep a host out.
func TestSilent(t *testing.T) {
	h := start(t)
	for range atOnce + 50 {
		c, err := net.Dial("tcp", h.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	home, _ := prepare(t, h, h.invite(t, member.Invitation{}))
	if err := home.Ask(t.Context(), About{Machine: "m"}); err != nil {
		t.Errorf("behind %d silent connections: %v", atOnce+50, err)
	}
}

package member

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
)

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func open(t *testing.T, fsys durable.FS, c *clock) *Registry {
	t.Helper()
	r, err := Open(Options{FS: fsys, Dir: "/fleet", Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newClock() *clock { return &clock{time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)} }

func invite(t *testing.T, r *Registry, i Invitation) Token {
	t.Helper()
	if i.Uses == 0 {
		i.Uses = 1
	}
	_, token, err := r.Invite(i, time.Hour, [32]byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func request(t Token, key, machine string) Request {
	return Request{Invitation: t.ID, Secret: t.Secret, Key: key, Machine: machine, Name: "web-" + key}
}

// refused reports the reason of a refusal.
func refused(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return fmt.Sprintf("not a refusal: %v", err)
}

func TestToken(t *testing.T) {
	token := newSecret()
	token.Pin[31] = 9
	text := token.String()
	address, back, err := ParseLine(strings.Fields("linerate-hub join hub.example:7072 " + text))
	if err != nil || back != token || address != "hub.example:7072" {
		t.Fatalf("read back %q: %v %v", address, back, err)
	}
	if strings.ContainsAny(text, " \t\n'\"$") {
		t.Errorf("%q is not one word of a shell", text)
	}
	// Every single wrong letter is found, so that a typing error does not read as another hub.
	for i := len(tokenPrefix); i < len(text); i++ {
		wrong := []byte(text)
		if wrong[i] = 'A'; text[i] == 'A' {
			wrong[i] = 'B'
		}
		if _, err := ParseToken(string(wrong)); !errors.Is(err, ErrMistype) {
			t.Errorf("letter %d wrong: %v, want ErrMistype", i, err)
		}
	}
	for _, line := range []string{"", "join", "hub.example " + text, "hub.example:1 nothing", text} {
		if _, _, err := ParseLine(strings.Fields(line)); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

func TestInvitations(t *testing.T) {
	c := newClock()
	r := open(t, durable.NewMem(), c)
	one := invite(t, r, Invitation{Groups: []string{"web"}, Labels: map[string]string{"site": "ams"}})
	m, err := r.Join(request(one, "K1", "M1"))
	if err != nil || m.State != Joined || !slices.Equal(m.Groups, []string{"web"}) || m.Labels["site"] != "ams" {
		t.Fatalf("join: %+v, %v", m, err)
	}
	// The answer was lost: the host asks again, and gets the same.
	again, err := r.Join(request(one, "K1", "M1"))
	if err != nil || again.ID != m.ID {
		t.Errorf("the same request again: %+v, %v", again, err)
	}
	const used = "the invitation is not known, has expired, or has no uses left"
	if _, err := r.Join(request(one, "K2", "M2")); refused(err) != used {
		t.Errorf("second use: %v", err)
	}
	wrong := one
	wrong.Secret[0]++
	if _, err := r.Join(request(wrong, "K1", "M1")); refused(err) != used {
		t.Errorf("wrong secret of a known key: %v", err)
	}
	three := invite(t, r, Invitation{Uses: 3})
	if _, err := r.Join(request(three, "K1", "M1")); !strings.Contains(refused(err), "joined before") {
		t.Errorf("known key with another invitation: %v", err)
	}
	if _, err := r.Join(request(three, "K3", "M3")); err != nil {
		t.Error(err)
	}
	c.at = c.at.Add(time.Hour - time.Second)
	if _, err := r.Join(request(three, "K4", "M4")); err != nil {
		t.Errorf("a second before the end: %v", err)
	}
	c.at = c.at.Add(time.Second)
	if _, err := r.Join(request(three, "K5", "M5")); refused(err) != used {
		t.Errorf("at the end: %v", err)
	}
	withdrawn := invite(t, r, Invitation{Uses: 5})
	if n := len(r.Invitations()); n != 1 {
		t.Errorf("%d invitations can be used, want 1", n)
	}
	if err := r.Withdraw(r.Invitations()[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Join(request(withdrawn, "K6", "M6")); refused(err) != used {
		t.Errorf("withdrawn: %v", err)
	}
	for _, bad := range []struct {
		uses int
		ttl  time.Duration
	}{{0, time.Hour}, {MostUses + 1, time.Hour}, {1, 0}, {1, LongestTTL + 1}, {1, -time.Hour}} {
		if _, _, err := r.Invite(Invitation{Uses: bad.uses}, bad.ttl, [32]byte{}); err == nil {
			t.Errorf("invitation with %d uses for %v: no error", bad.uses, bad.ttl)
		}
	}
}

// TestClones: every way in which one machine has two keys, or one key two machines.
func TestClones(t *testing.T) {
	c := newClock()
	r := open(t, durable.NewMem(), c)
	token := invite(t, r, Invitation{Uses: 100})
	first, err := r.Join(request(token, "K1", "M1"))
	if err != nil {
		t.Fatal(err)
	}
	// An image with its machine id, without the key: a second key for one machine.
	second, err := r.Join(request(token, "K2", "M1"))
	if !strings.Contains(refused(err), "cloned image") {
		t.Errorf("second key of a machine: %v", err)
	}
	if m, _ := r.Get(first.ID); m.State != Joined {
		t.Errorf("the first became %s: a clone must not lock its original out", m.State)
	}
	clone := r.Members()[1]
	if clone.State != Quarantined || second.ID != clone.ID {
		t.Errorf("the clone is %+v", clone)
	}
	if _, err := r.Renew("K2", "M1"); !strings.HasPrefix(refused(err), "quarantined") {
		t.Errorf("a quarantined host got an identity: %v", err)
	}
	if _, _, err := r.Decide(clone.ID, Joined, ""); err != nil {
		t.Fatal(err)
	}
	if m, err := r.Renew("K2", "M1"); err != nil || m.State != Joined {
		t.Errorf("after approval: %+v %v", m, err)
	}
	// A copied key on another machine, seen at its renewal and at its first sign of life.
	third, _ := r.Join(request(token, "K3", "M3"))
	if _, err := r.Renew("K3", "M4"); !strings.Contains(refused(err), "another machine") {
		t.Errorf("a copied key renewed: %v", err)
	}
	if m, _ := r.Get(third.ID); m.State != Quarantined {
		t.Errorf("a member with a copied key is %s", m.State)
	}
	fourth, _ := r.Join(request(token, "K5", "M5"))
	if _, changed, err := r.Beat(fourth.ID, "i1", "M6"); !changed || err != nil {
		t.Errorf("a copied key speaks: changed %v, %v", changed, err)
	}
	// A copy of the whole disk: two nodes in turn. Restarts are no copy.
	fifth, _ := r.Join(request(token, "K7", "M7"))
	for _, instance := range []string{"a", "a", "b", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"} {
		if _, changed, err := r.Beat(fifth.ID, instance, "M7"); changed || err != nil {
			t.Fatalf("restart as %s: changed %v, %v", instance, changed, err)
		}
	}
	var seen []bool
	for _, instance := range []string{"j", "k"} {
		_, changed, _ := r.Beat(fifth.ID, instance, "M7")
		seen = append(seen, changed)
	}
	if !slices.Equal(seen, []bool{false, true}) {
		t.Errorf("two nodes in turn: quarantined after each message: %v, want false true", seen)
	}
	if _, _, err := r.Beat(fifth.ID, "j", "M7"); !strings.HasPrefix(refused(err), "quarantined") {
		t.Errorf("a quarantined host speaks: %v", err)
	}
	if _, _, err := r.Beat("STRANGER", "j", "M7"); refused(err) != errUnknown.Reason {
		t.Errorf("a stranger speaks: %v", err)
	}
}

func TestLife(t *testing.T) {
	c := newClock()
	disk := durable.NewMem()
	r := open(t, disk, c)
	token := invite(t, r, Invitation{Uses: 100, Approve: true})
	m, err := r.Join(request(token, "K1", "M1"))
	if !strings.HasPrefix(refused(err), "waiting") {
		t.Fatalf("join that needs approval: %+v, %v", m, err)
	}
	id := r.Members()[0].ID
	if before, after, err := r.Decide(id, Joined, ""); err != nil || before.State != Waiting || after.State != Joined {
		t.Fatalf("approve: %v %v %v", before, after, err)
	}
	if m, err = r.Renew("K1", "M1"); err != nil || m.State != Joined {
		t.Errorf("after approval: %+v, %v", m, err)
	}
	// A new key: the old one is unknown from then on.
	if m, err = r.Rotate("K1", "K2", "M1"); err != nil || m.ID != id || m.Key != "K2" {
		t.Errorf("rotate: %+v, %v", m, err)
	}
	if _, err := r.Renew("K1", "M1"); refused(err) != errUnknown.Reason {
		t.Errorf("renew with the old key: %v", err)
	}
	// Silence: 30 days are allowed.
	c.at = c.at.Add(silentAtMost)
	if _, err := r.Renew("K2", "M1"); err != nil {
		t.Errorf("after 30 days: %v", err)
	}
	c.at = c.at.Add(silentAtMost + time.Hour)
	if _, err := r.Renew("K2", "M1"); !strings.Contains(refused(err), "silent for 30 days") {
		t.Errorf("after more: %v", err)
	}
	// A clock that was a year ahead and is right again locks no host out.
	if _, _, err := r.Decide(id, Joined, ""); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(-365 * 24 * time.Hour)
	if _, err := r.Renew("K2", "M1"); err != nil {
		t.Errorf("after the clock went back: %v", err)
	}
	if _, after, err := r.Decide(id, Removed, "sold"); err != nil || after.State != Removed {
		t.Errorf("remove: %v %v", after, err)
	}
	if _, _, err := r.Decide(id, Joined, ""); err == nil {
		t.Error("a removed host was approved")
	}
	if _, err := r.Renew("K2", "M1"); refused(err) != "removed from the fleet" {
		t.Errorf("renew of a removed host: %v", err)
	}
	// The machine of a removed host joins anew without quarantine.
	fresh := invite(t, r, Invitation{})
	if _, err := r.Join(request(fresh, "K9", "M1")); err != nil {
		t.Errorf("join after removal: %v", err)
	}
	// Lost: the next hub has an empty register and takes identities of its own fleet.
	want := r.Members()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	empty := open(t, durable.NewMem(), c)
	got, err := empty.Restore(id, "K2", []string{"web"}, nil, request(Token{}, "K2", "M1"))
	if err != nil || got.ID != id || got.State != Joined {
		t.Errorf("restore: %+v, %v", got, err)
	}
	// It does not take back what the register knows to be removed.
	r = open(t, disk, c)
	defer r.Close()
	if diff := cmp.Diff(want, r.Members()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if _, err := r.Restore(id, "K2", nil, nil, request(Token{}, "K2", "M1")); refused(err) != "removed from the fleet" {
		t.Errorf("restore of a removed host: %v", err)
	}
}

// TestTogether: joins that arrive together are each on disk before they return.
func TestTogether(t *testing.T) {
	const hosts = 500
	c := newClock()
	disk := durable.NewMem()
	r := open(t, disk, c)
	token := invite(t, r, Invitation{Uses: hosts})
	var all sync.WaitGroup
	for i := range hosts {
		all.Go(func() {
			if _, err := r.Join(request(token, fmt.Sprint("K", i), fmt.Sprint("M", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := r.Join(request(token, "K", "M")); err == nil {
		t.Errorf("use %d of an invitation with %d uses", hosts+1, hosts)
	}
	// What a power loss leaves is all of it.
	after := open(t, disk.CrashClone(0, rand.New(rand.NewPCG(1, 2))), c)
	defer after.Close()
	if diff := cmp.Diff(r.Members(), after.Members()); diff != "" {
		t.Errorf("after a power loss (-before +after):\n%s", diff)
	}
	if len(after.Members()) != hosts || len(after.Invitations()) != 0 {
		t.Errorf("after a power loss: %d members, %d invitations", len(after.Members()), len(after.Invitations()))
	}
}

// TestDiskFails makes each operation of the disk fail in turn: a host that got an identity is in
// the register that the next start reads, or the start fails.
func TestDiskFails(t *testing.T) {
	for n := range 40 {
		disk := durable.NewMem()
		faulty := durable.NewFaulty(disk, durable.FailAt(n, fs.ErrInvalid))
		c := newClock()
		var safe []string
		r, err := Open(Options{FS: faulty, Dir: "/fleet", Now: c.now})
		if err == nil {
			_, token, err := r.Invite(Invitation{Uses: 20}, time.Hour, [32]byte{})
			for i := range 10 {
				if err != nil {
					break
				}
				key := fmt.Sprint("K", i)
				if _, err = r.Join(request(token, key, "M"+key)); err == nil {
					safe = append(safe, key)
				}
			}
			_ = r.Close()
		}
		after := open(t, disk.CrashClone(0, rand.New(rand.NewPCG(1, 2))), c)
		for _, key := range safe {
			if _, err := after.Renew(key, "M"+key); err != nil {
				t.Errorf("operation %d fails: %s joined and is lost: %v", n, key, err)
			}
		}
		_ = after.Close()
	}
}

// TestRewritten: a log of which most is history is rewritten, and means the same.
func TestRewritten(t *testing.T) {
	c := newClock()
	disk := durable.NewMem()
	r := open(t, disk, c)
	token := invite(t, r, Invitation{Uses: 3})
	for i := range 3 {
		if _, err := r.Join(request(token, fmt.Sprint("K", i), fmt.Sprint("M", i))); err != nil {
			t.Fatal(err)
		}
	}
	longest := int64(0)
	for n := range 1200 {
		if n%2 == 0 { // the other half asks again at once, and that is not noted
			c.at = c.at.Add(time.Hour)
		}
		before := r.log.Size()
		if _, err := r.Renew("K1", "M1"); err != nil {
			t.Fatal(err)
		}
		if n%2 == 1 && r.log.Size() != before {
			t.Fatalf("a renewal within a minute adds %d bytes", r.log.Size()-before)
		}
		longest = max(longest, r.log.Size())
	}
	for range 600 {
		c.at = c.at.Add(time.Hour)
		if _, err := r.Renew("K1", "M1"); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, r.log.Size())
	}
	if r.log.Size()*2 > longest {
		t.Errorf("%d bytes while it runs, at most %d", r.log.Size(), longest)
	}
	want := r.Members()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, disk, c)
	defer r.Close()
	if diff := cmp.Diff(want, r.Members()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFullDiskAgain: a register whose disk was full writes itself anew with the next change, and
// loses nothing that was acknowledged.
func TestFullDiskAgain(t *testing.T) {
	mem := durable.NewMem()
	full := false
	disk := durable.NewFaulty(mem, func(op durable.Op) error {
		if full && op.Kind == durable.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	r, err := Open(Options{FS: disk, Dir: "/fleet"})
	if err != nil {
		t.Fatal(err)
	}
	invite := func() (Invitation, error) {
		i, _, err := r.Invite(Invitation{Uses: 1}, time.Hour, [32]byte{})
		return i, err
	}
	first, err := invite()
	if err != nil {
		t.Fatal(err)
	}
	full = true
	for range 3 {
		if _, err := invite(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("an invitation on a full disk: %v", err)
		}
	}
	full = false
	last, err := invite()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Options{FS: mem, Dir: "/fleet"})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	known := make(map[string]bool)
	for _, i := range again.Invitations() {
		known[i.ID] = true
	}
	if !known[first.ID] || !known[last.ID] {
		t.Errorf("after a restart %v are there, want %s and %s", known, first.ID, last.ID)
	}
}

package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
)

// patience is how long an event may take before the test fails: a guard against hanging.
const patience = time.Minute

func openTrust(t *testing.T) (*Trust, *Authority) {
	t.Helper()
	dir := t.TempDir()
	trust, err := OpenTrust(durable.OS(), filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := OpenAuthority(durable.OS(), filepath.Join(dir, "tls"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return trust, authority
}

func embed(t *testing.T) (*Hub, *Trust, *Authority) {
	t.Helper()
	trust, authority := openTrust(t)
	h, err := Embed(Options{Trust: trust, Authority: authority, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h, trust, authority
}

// hosting is one host of a test.
type hosting struct {
	*Conn
	id, public string
	up, down   chan error
}

func dial(t *testing.T, urls []string, config *tls.Config, trust *Trust, id string, expires time.Time,
	groups ...string) *hosting {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h := &hosting{id: id, up: make(chan error, 100), down: make(chan error, 100)}
	h.public, _ = key.Public()
	text, err := trust.Sign(Identity{ID: id, Key: h.public, Groups: groups, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	h.Conn, err = Dial(Dialing{URLs: urls, TLS: config, Key: key, Identity: func() (string, error) { return text, nil },
		Name: id, Longest: 10 * time.Millisecond,
		Connected: func() { h.up <- nil }, Disconnected: func(err error) { h.down <- err }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: did not happen", what)
		panic("unreachable")
	}
}

func at(h *Hub) []string { return []string{"tls://" + h.Address().String()} }

func pinned(t *testing.T, a *Authority) *tls.Config {
	t.Helper()
	c, err := Client(a.PEM, ServerName)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRights shows what a host can do with its own key: read and write its own subjects, and
// nothing of other hosts or of the hub.
func TestRights(t *testing.T) {
	h, trust, authority := embed(t)
	hub, err := h.Connect("hub")
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	heard := make(chan Message, 10)
	if _, err := hub.Subscribe(">", func(m Message) { heard <- m }); err != nil {
		t.Fatal(err)
	}
	if err := hub.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	host := dial(t, at(h), pinned(t, authority), trust, "A1", time.Time{}, "web")
	await(t, "connection", host.up)
	for _, subject := range []string{ToHost("B2", "ask"), ToHost("*", "ask"), "lr.h.>", ">", "_INBOX.>",
		ToGroup("db", "ask"), FromHost("B2", "beat"), FromHost("A1", "beat"), "$SYS.>", "$JS.API.>"} {
		s, err := host.Subscribe(subject, func(m Message) { t.Errorf("%s: read %s", subject, m.Subject) })
		if err != nil {
			t.Fatal(err)
		}
		if err := await(t, "refusal of "+subject, host.Denied()); !errors.Is(err, ErrDenied) {
			t.Errorf("subscribe %s: %v, want ErrDenied", subject, err)
		}
		_ = s.Close()
	}
	for _, subject := range []string{FromHost("B2", "beat"), ToHost("A1", "ask"), ToAll("ask"), "$SYS.REQ.CLAIMS.UPDATE",
		"$JS.API.INFO", "_INBOX.x"} {
		if err := host.Send(subject, "", []byte("forged")); err != nil {
			t.Fatal(err)
		}
		if err := await(t, "refusal of "+subject, host.Denied()); !errors.Is(err, ErrDenied) {
			t.Errorf("send %s: %v, want ErrDenied", subject, err)
		}
	}
	// And what it may do works, so that the refusals above mean something.
	got := make(chan string, 10)
	for _, subject := range []string{ToHost("A1", ">"), ToAll(">"), ToGroup("web", ">")} {
		if _, err := host.Subscribe(subject, func(m Message) { got <- string(m.Data) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{ToHost("A1", "ask"), ToAll("ask"), ToGroup("web", "ask")} {
		if err := hub.Send(subject, "", []byte(subject)); err != nil {
			t.Fatal(err)
		}
		if text := await(t, subject, got); text != subject {
			t.Errorf("host read %q, want %q", text, subject)
		}
		if m := await(t, "the hub's own copy", heard); m.Subject != subject {
			t.Errorf("the hub heard %s, want only what it sent itself", m.Subject)
		}
	}
	if err := host.Send(FromHost("A1", "beat"), "", []byte("x")); err != nil {
		t.Fatal(err)
	}
	m := await(t, "beat", heard)
	if id, kind, ok := Sender(m.Subject); !ok || id != "A1" || kind != "beat" {
		t.Errorf("sender of %s: %q %q %v", m.Subject, id, kind, ok)
	}
	if len(host.Denied()) != 0 {
		t.Errorf("the host was refused what it may do: %v", <-host.Denied())
	}
}

// TestAbsent: a message to a host that is not connected is answered at once.
func TestAbsent(t *testing.T) {
	h, _, _ := embed(t)
	hub, err := h.Connect("hub")
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	heard := make(chan Message, 1)
	reply := FromHost("GONE", "r.1")
	if _, err := hub.Subscribe(FromHost("*", "r.>"), func(m Message) { heard <- m }); err != nil {
		t.Fatal(err)
	}
	if err := hub.Send(ToHost("GONE", "ask"), reply, []byte("?")); err != nil {
		t.Fatal(err)
	}
	if m := await(t, "answer", heard); !m.Absent || m.Subject != reply {
		t.Errorf("answer %+v, want an absence on %s", m, reply)
	}
}

// TestRevoked: a revocation ends the live connection and refuses the next. A readmitted host
// connects again.
func TestRevoked(t *testing.T) {
	h, trust, authority := embed(t)
	revoked(t, h, trust, func(id string) *hosting {
		return dial(t, at(h), pinned(t, authority), trust, id, time.Time{})
	})
}

func revoked(t *testing.T, h *Hub, trust *Trust, dial func(id string) *hosting) {
	t.Helper()
	host, other := dial("A1"), dial("B2")
	await(t, "connection", host.up)
	await(t, "connection of the other", other.up)
	if err := trust.Revoke(host.public, time.Now().Add(time.Second), time.Hour); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := h.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the revoked connection", host.down)
	if !trust.Revoked(host.public) || trust.Revoked(other.public) {
		t.Error("the trust does not name exactly the revoked key")
	}
	// It tries again and again (Longest is 10 ms) and never gets in: the first connection that
	// stands is one after Readmit.
	if len(host.up) != 0 {
		t.Error("the revoked host connected again")
	}
	if err := trust.Readmit(host.public); err != nil {
		t.Fatal(err)
	}
	if len(host.up) != 0 {
		t.Error("the revoked host connected again")
	}
	if err := h.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "connection after readmission", host.up)
	if len(other.down) != 0 {
		t.Error("the revocation ended the connection of another host")
	}
}

// TestExpired: an identity that expires ends its connection.
func TestExpired(t *testing.T) {
	h, trust, authority := embed(t)
	for lifetime := 2 * time.Second; lifetime < patience; lifetime *= 2 {
		host := dial(t, at(h), pinned(t, authority), trust, "A1", time.Now().Add(lifetime))
		select {
		case <-host.up:
			await(t, "end of the connection", host.down)
			return
		case <-time.After(lifetime): // a busy machine: the identity expired before the host connected
		}
	}
	t.Error("no host connected before its identity expired")
}

// TestFirstPingIsLate: where ten thousand hosts return at once, a connection's own goroutine waits
// for seconds between the greeting of its host and the answer. A ping that comes first makes
// nats.go begin anew, and the hub do all its work again.
func TestFirstPingIsLate(t *testing.T) {
	testenv.Need(t, testenv.Long) // three seconds; the server's own first ping comes after 2.4 at most
	h, trust, authority := embed(t)
	for {
		url, heard := counting(t, h.Address().String())
		began := time.Now()
		host := dial(t, []string{url}, pinned(t, authority), trust, "A1", time.Time{})
		await(t, "connection", host.up)
		if err := host.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := heard.Load()
		time.Sleep(3 * time.Second)
		after := heard.Load()
		host.Close()
		if time.Since(began) >= pingEvery {
			continue // this process stood still, and the usual pings have begun
		}
		if after != before {
			t.Errorf("the hub says %d bytes to a host that is silent", after-before)
		}
		return
	}
}

// counting passes one connection on, and counts the bytes that come back.
func counting(t *testing.T, to string) (url string, heard *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard = new(atomic.Int64)
	go func() {
		near, err := l.Accept()
		_ = l.Close()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer far.Close()
		go func() { _, _ = io.Copy(far, near) }()
		for b := make([]byte, 4096); ; {
			n, err := far.Read(b)
			heard.Add(int64(n))
			if _, lost := near.Write(b[:n]); err != nil || lost != nil {
				return
			}
		}
	}()
	return "tls://" + l.Addr().String(), heard
}

// TestElsewhere runs the same identities at a server that knows nothing but what Resolver prints.
func TestElsewhere(t *testing.T) {
	trust, authority := openTrust(t)
	dir := t.TempDir()
	text, err := trust.Resolver(filepath.Join(dir, "claims"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte("listen: \"127.0.0.1:-1\"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs, options.NoLog = true, true
	options.TLS, options.TLSConfig, options.TLSHandshakeFirst = true, authority.Server(), true
	options.TLSTimeout = handshakeWithin.Seconds()
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not listen")
	}
	// The certificate carries the name of a hub, not the address: what a cluster's own would have.
	urls := []string{fmt.Sprintf("tls://%s", s.Addr())}
	h, err := Attach(Options{Trust: trust, URLs: urls, Roots: authority.PEM, ServerName: ServerName})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	hub, err := h.Connect("hub")
	if err != nil {
		t.Fatal(err)
	}
	hub.Close()
	revoked(t, h, trust, func(id string) *hosting {
		return dial(t, urls, pinned(t, authority), trust, id, time.Time{})
	})
}

// TestForeign: identities and hubs of another fleet are refused.
func TestForeign(t *testing.T) {
	h, trust, authority := embed(t)
	other, otherAuthority := openTrust(t)
	key, _ := NewKey()
	public, _ := key.Public()
	text, err := other.Sign(Identity{ID: "A1", Key: public})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Verify(text); !errors.Is(err, ErrForeign) {
		t.Errorf("verify an identity of another fleet: %v, want ErrForeign", err)
	}
	if _, err := trust.Verify("x.y.z"); !errors.Is(err, ErrForeign) {
		t.Errorf("verify nonsense: %v, want ErrForeign", err)
	}
	own, err := trust.Sign(Identity{ID: "A1", Key: public, Groups: []string{"web", "db"},
		Labels: map[string]string{"Site": "AMS=1"}, Expires: time.Unix(5e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	i, err := trust.Verify(own)
	if err != nil || i.ID != "A1" || i.Key != public || strings.Join(i.Groups, " ") != "db web" ||
		i.Expires.Unix() != 5e9 || i.Labels["Site"] != "AMS=1" {
		t.Errorf("identity read back: %+v, %v", i, err)
	}
	for _, bad := range []Identity{{ID: "a.b", Key: public}, {ID: ">", Key: public}, {ID: "", Key: public},
		{ID: "A", Key: "x"}, {ID: "A", Key: public, Groups: []string{"*"}}} {
		if _, err := trust.Sign(bad); err == nil {
			t.Errorf("signed %+v", bad)
		}
	}
	if c, err := tls.Dial("tcp", h.Address().String(), Pinned(authority.Fingerprint, nil)); err != nil {
		t.Errorf("dial with the right pin: %v", err)
	} else {
		c.Close()
	}
	if _, err := tls.Dial("tcp", h.Address().String(), Pinned(otherAuthority.Fingerprint, nil)); !errors.Is(err,
		ErrOtherHub) {
		t.Errorf("dial with the pin of another hub: %v, want ErrOtherHub", err)
	}
}

// TestSessions: a client resumes its session with the hub after a restart of the hub, which has
// another certificate by then. It resumes none with another hub, and does not accept it either.
func TestSessions(t *testing.T) {
	dir, sessions := t.TempDir(), Sessions()
	open := func(dir string) *Authority {
		t.Helper()
		a, err := OpenAuthority(durable.OS(), dir, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	dial := func(hub *Authority, pin [32]byte) (resumed bool, err error) {
		t.Helper()
		l, err := tls.Listen("tcp", "127.0.0.1:0", hub.Server())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Write([]byte("x"))
		}()
		c, err := tls.Dial("tcp", l.Addr().String(), Pinned(pin, sessions))
		if err != nil {
			return false, err
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); err != nil { // the ticket comes before it
			t.Fatal(err)
		}
		return c.ConnectionState().DidResume, nil
	}
	first := open(dir)
	pin := first.Fingerprint
	for i, hub := range []*Authority{first, first, open(dir)} {
		if resumed, err := dial(hub, pin); err != nil || resumed != (i > 0) {
			t.Errorf("connection %d: resumed %v, %v", i, resumed, err)
		}
	}
	if _, err := dial(open(t.TempDir()), pin); !errors.Is(err, ErrOtherHub) {
		t.Errorf("another hub: %v, want ErrOtherHub", err)
	}
}

// TestKeysSurvive: a second start reads the keys of the first. Keys of which a part is gone are an
// error and not a new fleet.
func TestKeysSurvive(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenTrust(durable.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := NewKey()
	public, _ := key.Public()
	text, _ := first.Sign(Identity{ID: "A1", Key: public})
	if err := first.Revoke("UOLD", time.Now().Add(-48*time.Hour), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := first.Revoke(public, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	// The operator's own key is not needed for this.
	if err := os.Remove(filepath.Join(dir, operatorKey)); err != nil {
		t.Fatal(err)
	}
	second, err := OpenTrust(durable.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Verify(text); err != nil {
		t.Errorf("verify after a restart: %v", err)
	}
	if !second.Revoked(public) || second.Revoked("UOLD") {
		t.Error("revocations after a restart: want the fresh one and not the one that has outlived its identities")
	}
	for _, name := range []string{operatorSigning, accountSigning, systemKey, accountJWT} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v, want mode 0600", name, info.Mode(), err)
		}
	}
	if err := os.Remove(filepath.Join(dir, accountSigning)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTrust(durable.OS(), dir); err == nil {
		t.Error("opened a trust without its signing key")
	}
}

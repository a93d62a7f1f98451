package peer_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// members is a far host whose peers have keys of their own.
type members struct {
	*far
	file roster.File
}

// serveMembers starts a far host for peers. addr is where, and file has the peers of an earlier
// one; both may be empty.
func serveMembers(t *testing.T, addr string, file roster.File, peers ...roster.Peer) *members {
	t.Helper()
	if file.FS == nil {
		file = roster.File{FS: durable.NewMem(), Path: "/serve/peers.json"}
	}
	m := &members{file: file}
	if len(peers) > 0 {
		m.edit(t, func([]roster.Peer) []roster.Peer { return peers })
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var at string
	m.far = serve(t, func(o *peer.ServerOptions) {
		if err := o.Listener.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if o.Peers, err = roster.Follow(file, o.Log); err != nil {
			t.Fatal(err)
		}
		if o.Listener, err = wire.ListenKeys(t.Context(), addr, o.Peers.Keys()); err != nil {
			t.Fatal(err)
		}
		at = o.Listener.Addr().String()
	})
	m.addr = at
	return m
}

func (m *members) edit(t *testing.T, change func([]roster.Peer) []roster.Peer) {
	t.Helper()
	if err := m.file.Edit(t.Context(), func(p []roster.Peer) ([]roster.Peer, error) {
		return change(p), nil
	}); err != nil {
		t.Fatal(err)
	}
}

// as connects a peer.
func (m *members) as(p roster.Peer) *peer.Client {
	m.t.Helper()
	m.key = p.Key
	return m.connect(m.addr, peer.ConnectOptions{})
}

func TestEachPeerHasItsRights(t *testing.T) {
	t.Parallel()
	hub := roster.Peer{Name: "hub", Key: wire.NewKey()}
	lab := roster.Peer{Name: "lab", Key: wire.NewKey(),
		Tuning: &knob.Permission{Class: knob.DisturbsNewSockets, Patterns: []string{"*tcp_rmem"}}}
	m := serveMembers(t, "", roster.File{}, hub, lab)
	c := m.as(hub)
	if c.Info().AllowTuning {
		t.Error("the hub may tune")
	}
	set := func(c *peer.Client, id knob.ID) error {
		_, err := c.Apply(t.Context(), "try", knob.Setting{Knob: id, Value: larger})
		return err
	}
	if err := set(c, rmem); !errors.Is(err, peer.ErrTuningOff) ||
		!strings.Contains(err.Error(), "this key allows measuring") {
		t.Errorf("the hub sets: %v", err)
	}
	d := m.as(lab)
	if d.Info().Tuning != "d1,*tcp_rmem" {
		t.Errorf("announced %q", d.Info().Tuning)
	}
	if err := set(d, wmem); !errors.Is(err, knob.ErrNotAllowed) {
		t.Errorf("lab sets what it may not: %v", err)
	}
	if err := set(d, rmem); err != nil {
		t.Error(err)
	}
	m.await("peer lab")
	// Rights that the file takes away are gone for the next change of a client that is connected.
	m.edit(t, func(p []roster.Peer) []roster.Peer { p[1].Tuning = nil; return p })
	m.await("is read again")
	if err := set(d, rmem); !errors.Is(err, peer.ErrTuningOff) {
		t.Errorf("lab sets without the right: %v", err)
	}
	_, err := peer.Connect(t.Context(), m.addr, peer.ConnectOptions{Key: wire.NewKey().String()})
	if !errors.Is(err, wire.ErrWrongKey) {
		t.Errorf("a key of no peer: %v", err)
	}
}

// TestRevokedDuringATest revokes a peer that measures, and that has a trial. The other peer does
// not notice.
func TestRevokedDuringATest(t *testing.T) {
	t.Parallel()
	hub := roster.Peer{Name: "hub", Key: wire.NewKey()}
	lab := roster.Peer{Name: "lab", Key: wire.NewKey(), Tuning: &knob.Permission{Class: knob.DisturbsNewSockets}}
	m := serveMembers(t, "", roster.File{}, hub, lab)
	other := m.as(hub)
	c := m.as(lab)
	if _, err := c.Apply(t.Context(), "to be lost", knob.Setting{Knob: rmem, Value: larger}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	began := make(chan struct{}, 1)
	go func() {
		_, err := c.Run(ctx, traffic.Spec{Test: traffic.RR, Duration: 10 * time.Minute, Interval: brief},
			func(traffic.Interval) {
				select {
				case began <- struct{}{}:
				default:
				}
			})
		done <- err
	}()
	select {
	case <-began:
	case err := <-done:
		t.Fatal(err)
	}
	m.edit(t, func(p []roster.Peer) []roster.Peer { return p[:1] })
	err := <-done
	if !errors.Is(err, wire.ErrPeerGone) ||
		err.Error() != "rr test: farside closes the connection: the key has been revoked" {
		t.Errorf("the test of a revoked peer: %v", err)
	}
	m.await("took back trial")
	if v := m.value(rmem); v != original {
		t.Errorf("the trial left %q", v)
	}
	if _, err := peer.Connect(t.Context(), m.addr, peer.ConnectOptions{Key: lab.Key.String()}); !errors.Is(err,
		wire.ErrWrongKey) {
		t.Errorf("the revoked key: %v", err)
	}
	if _, err := other.Run(t.Context(), ping, nil); err != nil {
		t.Errorf("the other peer: %v", err)
	}
}

// TestPeerExpires has a key that ends before its peer comes, and one that ends while it is
// connected.
func TestPeerExpires(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Hour)
	old := roster.Peer{Name: "old", Key: wire.NewKey(), Expires: past}
	hub := roster.Peer{Name: "hub", Key: wire.NewKey(), Expires: past.Add(100 * time.Hour)}
	m := serveMembers(t, "", roster.File{}, old, hub)
	_, err := peer.Connect(t.Context(), m.addr, peer.ConnectOptions{Key: old.Key.String()})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "the key has expired") {
		t.Errorf("an expired key: %v", err)
	}
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "linerate peers add old") {
		t.Errorf("the advice of %v", err)
	}
	m.await("peer old turned away: the key has expired")
	c := m.as(hub)
	m.edit(t, func(p []roster.Peer) []roster.Peer { p[1].Expires = past; return p })
	<-c.Done()
	m.await("is closed: the key has expired")
}

// TestKeysSurviveARestart ends a far host and starts another one with the same file and port.
func TestKeysSurviveARestart(t *testing.T) {
	t.Parallel()
	hub := roster.Peer{Name: "hub", Key: wire.NewKey()}
	lab := roster.Peer{Name: "lab", Key: wire.NewKey()}
	// Not one that the kernel assigns: while no program listens there, it may give that to another.
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePorts(t, 1)))
	m := serveMembers(t, at, roster.File{}, hub, lab)
	m.as(hub)
	m.stop()
	uses, err := m.file.Uses()
	if u := uses[hub.Key.ID()]; err != nil || u.From != "127.0.0.1" || u.Time.IsZero() || len(uses) != 1 {
		t.Errorf("last uses %v, %v", uses, err)
	}
	again := serveMembers(t, m.addr, m.file)
	again.as(hub)
	again.as(lab)
	again.stop()
	if uses, err = m.file.Uses(); err != nil || len(uses) != 2 {
		t.Errorf("last uses %v, %v", uses, err)
	}
}

// TestFileReplacedUnderAServer replaces the file by a damaged one, then by none, then by another.
func TestFileReplacedUnderAServer(t *testing.T) {
	t.Parallel()
	hub := roster.Peer{Name: "hub", Key: wire.NewKey()}
	m := serveMembers(t, "", roster.File{}, hub)
	if err := durable.Replace(m.file.FS, m.file.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.await("damaged in line 1")
	c := m.as(hub) // the peers stay as they were
	if err := m.file.FS.Remove(m.file.Path); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	lab := roster.Peer{Name: "lab", Key: wire.NewKey()}
	m.edit(t, func([]roster.Peer) []roster.Peer { return slices.Clone([]roster.Peer{lab}) })
	m.await("number of peers: 1")
	m.as(lab)
}

package peer_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/wire"
)

// TestPermissionIsEnforcedWhereTheKnobIs has a client that asks for more than the far host permits,
// whatever its own --allow says.
func TestPermissionIsEnforcedWhereTheKnobIs(t *testing.T) {
	t.Parallel()
	const ring = knob.ID("ethtool:eth0/ring.rx")
	f := serve(t, func(o *peer.ServerOptions) {
		o.Tuning = &knob.Permission{Class: knob.DisturbsNewSockets, Patterns: []string{"*tcp_rmem", "ethtool:*"}}
	})
	c := f.connect(f.addr, peer.ConnectOptions{})
	if c.Info().Tuning != "d1,*tcp_rmem,ethtool:*" {
		t.Errorf("announced %q", c.Info().Tuning)
	}
	for _, s := range []knob.Setting{
		{Knob: ring, Value: "512"},                                      // d2
		{Knob: wmem, Value: "4096 16384 8388608"},                       // matches no pattern
		{Knob: "sysctl:net/ipv4/tcp_wmem", Value: "4096 16384 8388608"}, // in another spelling
	} {
		_, err := c.Apply(t.Context(), "more than allowed", s)
		if !errors.Is(err, knob.ErrNotAllowed) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", s.Knob, err)
		}
	}
	// One setting that is not permitted keeps all others of its request from being written.
	if _, err := c.Apply(t.Context(), "half", knob.Setting{Knob: rmem, Value: larger},
		knob.Setting{Knob: ring, Value: "512"}); err == nil || f.value(rmem) != original {
		t.Errorf("%v; the knob is %q", err, f.value(rmem))
	}
	if _, err := c.Apply(t.Context(), "allowed", knob.Setting{Knob: rmem, Value: larger}); err != nil {
		t.Error(err)
	}
}

// TestUndoNeedsThePermissionToo has a client undo what an earlier serve, which allowed more, let be
// committed.
func TestUndoNeedsThePermissionToo(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.Tuning = &knob.Permission{Patterns: []string{"*tcp_wmem"}} })
	j, err := journal.Open(journal.Options{Dir: "/state", FS: f.fs, Backend: f.memory, Side: peer.FarSide,
		Unguarded: true})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: rmem, Value: larger})
	if err == nil {
		err = j.Commit(t.Context(), changes[0].ID)
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	c := f.connect(f.addr, peer.ConnectOptions{})
	if err := c.Undo(t.Context(), changes[0].ID); !errors.Is(err, knob.ErrNotAllowed) || f.value(rmem) != larger {
		t.Errorf("undone without permission: %v, %q", err, f.value(rmem))
	}
}

// TestCommitNeedsANewConnection has a change that keeps open connections alive and lets no new one
// in, as a firewall or a wrong MTU does.
func TestCommitNeedsANewConnection(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	n := forward(t, f.addr)
	c := f.connect(n.addr, peer.ConnectOptions{})
	ids, err := c.Apply(t.Context(), "to lock out", knob.Setting{Knob: rmem, Value: larger})
	if err != nil {
		t.Fatal(err)
	}
	n.shut()
	if err := c.Commit(t.Context(), ids...); !errors.Is(err, peer.ErrUnconfirmed) ||
		!errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("committed without a new connection: %v", err)
	}
	f.await("did not confirm 1 changes")
	f.await("took back trial")
	if v := f.value(rmem); v != original {
		t.Errorf("the knob is %q", v)
	}
}

// TestNewConnectionMustCarryData lets the new connection in, and no packets on it.
func TestNewConnectionMustCarryData(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { *o = o.WithConfirmWithin(300 * time.Millisecond) })
	n := forward(t, f.addr)
	c := f.connect(n.addr, peer.ConnectOptions{})
	ids, err := c.Apply(t.Context(), "to swallow data", knob.Setting{Knob: rmem, Value: larger})
	if err != nil {
		t.Fatal(err)
	}
	n.deaf()
	if err := c.Commit(t.Context(), ids...); !errors.Is(err, peer.ErrUnconfirmed) {
		t.Errorf("committed over a connection that carries nothing: %v", err)
	}
	f.await("took back trial")
	if v := f.value(rmem); v != original {
		t.Errorf("the knob is %q", v)
	}
}

// TestCommitOfAnOlderClient has a client that claims a commit and knows of no confirmation.
func TestCommitOfAnOlderClient(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	conn, err := wire.Dial(t.Context(), f.addr, f.key)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	type reply struct {
		Body struct {
			IDs []string `json:"ids"`
		} `json:"body"`
		Fault *struct {
			Kinds []string `json:"kinds"`
		} `json:"fault"`
	}
	ask := func(typ string, body any) (r reply) {
		t.Helper()
		if err := conn.Send(t.Context(), typ, map[string]any{"id": 1, "body": body}); err != nil {
			t.Fatal(err)
		}
		m, err := conn.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(m.Body, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	ask("hello", map[string]any{"protocol": peer.Protocol})
	made := ask("change.apply", map[string]any{"settings": []knob.Setting{{Knob: rmem, Value: larger}}})
	if len(made.Body.IDs) != 1 {
		t.Fatalf("got %+v", made)
	}
	for _, typ := range []string{"change.commit", "change.confirm"} {
		if r := ask(typ, map[string]any{"ids": made.Body.IDs}); r.Fault == nil {
			t.Errorf("%s was accepted", typ)
		}
	}
	conn.Close()
	f.await("took back trial")
	if v := f.value(rmem); v != original {
		t.Errorf("the knob is %q", v)
	}
}

// TestStrangerCannotConfirm has another host that has read the token of a commit on the path: its
// connection neither confirms the commit nor takes the place of the client's.
func TestStrangerCannotConfirm(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	conn, err := wire.Dial(t.Context(), f.addr, f.key)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func(typ string, body, into any) {
		t.Helper()
		if err := conn.Send(t.Context(), typ, map[string]any{"id": 1, "body": body}); err != nil {
			t.Fatal(err)
		}
		m, err := conn.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var reply struct {
			Body  json.RawMessage `json:"body"`
			Fault json.RawMessage `json:"fault"`
		}
		if err := json.Unmarshal(m.Body, &reply); err != nil || reply.Fault != nil {
			t.Fatalf("%s: %s, %v", typ, m.Body, err)
		}
		if into == nil {
			return
		}
		if err := json.Unmarshal(reply.Body, into); err != nil {
			t.Fatal(err)
		}
	}
	ask("hello", map[string]any{"protocol": peer.Protocol, "confirms": true}, nil)
	var made struct {
		IDs []string `json:"ids"`
	}
	ask("change.apply", map[string]any{"settings": []knob.Setting{{Knob: rmem, Value: larger}}}, &made)
	var commit struct {
		Token wire.Token `json:"token"`
	}
	ask("change.commit", map[string]any{"ids": made.IDs}, &commit)
	stranger, err := wire.DialData(t.Context(), f.addr, commit.Token, 0,
		wire.DataOptions{From: netip.MustParseAddr("127.0.0.2")})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	// A stranger who is let in waits for the confirmation, and would wait for ever.
	if err := stranger.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the stranger is let in: %v", err)
	}
	own, err := wire.DialData(t.Context(), f.addr, commit.Token, 0, wire.DataOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	exchanged := make(chan error, 1)
	go func() {
		_, err := own.Write(make([]byte, 64<<10))
		_, readErr := io.CopyN(io.Discard, own, 64<<10)
		exchanged <- errors.Join(err, readErr)
	}()
	ask("change.confirm", nil, nil)
	if err := <-exchanged; err != nil || f.value(rmem) != larger {
		t.Errorf("%v; the knob is %q", err, f.value(rmem))
	}
}

package join

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/internal/kernel/incoming"
)

// Options are what a server needs.
type Options struct {
	Register  *member.Registry
	Trust     *bus.Trust
	Authority *bus.Authority
	// Admit puts the state of a member in force at the bus before the host gets its answer.
	Admit    func(member.Member) error
	Lifetime time.Duration // of an identity; 0: 24 hours
	// Where the bus is. An address without a host is at the host of this server.
	Bus        []string
	Roots      []byte // that sign the certificates of the bus, PEM
	ServerName string // in those certificates; empty: the name in each address
	Log        *slog.Logger
	Now        func() time.Time
}

// DefaultLifetime is how long an identity lasts.
const DefaultLifetime = 24 * time.Hour

// A register that was lost takes back identities that ended at most this long ago. Revocations are
// kept for longer, so that a removed host is not among them.
const (
	restoreWithin = 30 * 24 * time.Hour
	// KeepRevocations is how long a revoked key is named at the bus.
	KeepRevocations = 90 * 24 * time.Hour
)

// atOnce is how many connections are served at a time.
const atOnce = 512

// Server answers hosts. Its zero value is not usable; see [NewServer].
type Server struct {
	o Options

	mu      sync.Mutex
	waiting []*silent // connections that have asked nothing yet, the oldest first
	open    int
	freed   chan struct{}
}

// silent is a connection whose question has not come.
type silent struct{ net.Conn }

// NewServer returns a server that [Server.Serve] runs.
func NewServer(o Options) *Server {
	if o.Lifetime == 0 {
		o.Lifetime = DefaultLifetime
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{o: o, freed: make(chan struct{}, 1)}
}

// Serve answers on a listener until the context ends, which is not an error. It closes the
// listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer incoming.CloseWith(ctx, func() { _ = l.Close() })()
	config := s.o.Authority.Server()
	var all sync.WaitGroup
	defer all.Wait()
	report := incoming.Log(func(sentence string) { s.o.Log.Warn("fleet: " + sentence) })
	return incoming.Connections(ctx, l.Accept, report, func(raw net.Conn) {
		one := s.enter(raw)
		all.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
			s.serve(tls.Server(raw, config), one)
		})
	})
}

// enter counts a connection. If all places are taken, the one that has been silent for longest
// gives way.
func (s *Server) enter(c net.Conn) *silent {
	one := &silent{c}
	s.mu.Lock()
	for s.open >= atOnce {
		if len(s.waiting) > 0 {
			_ = s.waiting[0].Close()
			s.waiting = s.waiting[1:]
		}
		s.mu.Unlock()
		<-s.freed
		s.mu.Lock()
	}
	s.open++
	s.waiting = append(s.waiting, one)
	s.mu.Unlock()
	return one
}

// asked notes that a connection is not silent any more.
func (s *Server) asked(one *silent) {
	s.mu.Lock()
	for i, w := range s.waiting {
		if w == one {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			break
		}
	}
	s.mu.Unlock()
}

func (s *Server) serve(c *tls.Conn, one *silent) {
	defer func() {
		_ = c.Close()
		s.asked(one)
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}()
	if c.SetDeadline(time.Now().Add(within)) != nil {
		return
	}
	var q question
	if err := readLine(c, longestQuestion, &q); err != nil {
		return // a scanner, or a host that has gone
	}
	s.asked(one)
	a := s.answer(c.ConnectionState(), q, c.RemoteAddr())
	b, err := json.Marshal(a)
	if err != nil {
		return
	}
	_, _ = c.Write(append(b, '\n')) // a host that has gone asks again
}

// answer decides about a question.
func (s *Server) answer(state tls.ConnectionState, q question, from net.Addr) answer {
	m, key, err := s.decide(state, q, from)
	var refusal *member.Refusal
	switch {
	case errors.As(err, &refusal):
		if m.ID != "" {
			if err := s.o.Admit(m); err != nil {
				s.o.Log.Error("fleet: "+err.Error(), "host", m.ID)
			}
		}
		s.o.Log.Info("fleet: refused "+limited(q.Op), "from", from.String(), "host", m.ID, "reason", refusal.Reason)
		return answer{Refusal: refusal.Reason, Retry: refusal.Retry}
	case err != nil:
		s.o.Log.Error("fleet: "+err.Error(), "operation", q.Op)
		return answer{Refusal: "the hub cannot answer now; its log has the reason", Retry: true}
	}
	now := s.o.Now().UTC()
	a := answer{ID: m.ID, Groups: m.Groups, Issued: now, Expires: now.Add(s.o.Lifetime).Truncate(time.Second),
		Bus: s.o.Bus, Roots: string(s.o.Roots), ServerName: s.o.ServerName}
	if err = s.o.Admit(m); err == nil {
		a.Identity, err = s.o.Trust.Sign(bus.Identity{ID: m.ID, Key: key, Groups: m.Groups, Labels: m.Labels,
			Expires: a.Expires})
	}
	if err != nil {
		s.o.Log.Error("fleet: "+err.Error(), "host", m.ID)
		return answer{Refusal: "the hub cannot answer now; its log has the reason", Retry: true}
	}
	if q.Op != opRenew {
		s.o.Log.Info("fleet: "+q.Op, "from", from.String(), "host", m.ID, "name", m.Name)
	}
	return a
}

// decide asks the register. It returns the key that the next identity is for.
func (s *Server) decide(state tls.ConnectionState, q question, from net.Addr) (member.Member, string, error) {
	if err := verify(state, q); err != nil {
		return member.Member{}, "", &member.Refusal{Reason: err.Error()}
	}
	r := member.Request{Key: q.Key, Machine: limited(q.Machine), Name: limited(q.Name), From: hostOf(from)}
	switch q.Op {
	case opJoin:
		if len(q.Invitation) != len(r.Invitation) || len(q.Secret) != len(r.Secret) {
			return member.Member{}, "", &member.Refusal{Reason: "not an invitation"}
		}
		copy(r.Invitation[:], q.Invitation)
		copy(r.Secret[:], q.Secret)
		m, err := s.o.Register.Join(r)
		return m, q.Key, err
	case opRenew:
		// The identity matters only for a register that was lost: what is in it decides.
		i, err := s.o.Trust.Verify(q.Identity)
		if err == nil && i.Key == q.Key && !s.o.Trust.Revoked(q.Key) && s.o.Now().Sub(i.Expires) <= restoreWithin {
			m, err := s.o.Register.Restore(i.ID, q.Key, i.Groups, i.Labels, r)
			return m, q.Key, err
		}
		m, err := s.o.Register.Renew(q.Key, r.Machine)
		return m, q.Key, err
	case opRotate:
		m, err := s.o.Register.Rotate(q.Key, q.Next, r.Machine)
		if err == nil {
			old := m
			old.Key, old.State = q.Key, member.Removed
			err = s.o.Admit(old)
		}
		return m, q.Next, err
	}
	return member.Member{}, "", &member.Refusal{Reason: "not an operation of this hub"}
}

// limited keeps the letters, digits and marks of a name that a host chose, at most 64 of them.
func limited(s string) string {
	s = strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') || strings.ContainsRune("-._", r) {
			return r
		}
		return -1
	}, s)
	return s[:min(len(s), 64)]
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

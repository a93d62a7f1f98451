package peer

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/wire"
)

// mayEnter refuses a client whose own key has ended. The key of a revoked one is not in the ring,
// so that client comes this far only when it is revoked at that moment.
func (s *server) mayEnter(conn *wire.Conn) error {
	if s.Peers == nil {
		return nil
	}
	return s.endOf(s.Peers.Of(conn.Key()))
}

// endOf returns why a peer may not stay; nil if it may. A revoked peer is nil.
func (s *server) endOf(p *roster.Peer) error {
	switch {
	case p == nil:
		return errKeyRevoked
	case s.Peers.Expired(p):
		return keyRefusal{"the key has expired", "on that host, `linerate peers revoke " + p.Name +
			"` and `linerate peers add " + p.Name + "` make a new one"}
	}
	return nil
}

// errKeyRevoked reaches a client that is connected, or connects, when its key is revoked.
var errKeyRevoked error = keyRefusal{"the key has been revoked",
	"on that host, `linerate peers add NAME` makes a new one"}

// nameOf returns what the log calls a client until it has said its name.
func (s *server) nameOf(conn *wire.Conn) string {
	a := conn.RemoteAddr()
	if a == nil {
		return "a client over ssh"
	}
	if s.Peers != nil {
		if p := s.Peers.Of(conn.Key()); p != nil {
			return fmt.Sprintf("%s, peer %s", a, p.Name)
		}
	}
	return a.String()
}

// permission returns what the client may change now; nil: nothing.
func (c *session) permission() *knob.Permission {
	if c.Peers == nil {
		return c.Tuning
	}
	p := c.Peers.Of(c.conn.Key())
	if c.endOf(p) != nil {
		return nil
	}
	return p.Tuning
}

// notePeer notes the use of a key.
func (c *session) notePeer() {
	if c.Peers == nil {
		return
	}
	if p := c.Peers.Of(c.conn.Key()); p != nil {
		c.Peers.Used(p, c.ip)
	}
}

// watchPeers follows the file of the peers and closes the clients that have lost their keys, until
// the returned function is called.
func (s *server) watchPeers(ctx context.Context) (end func()) {
	if s.Peers == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Peers.Run(ctx, s.dropLost)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// dropLost closes the clients whose keys have been revoked or have expired.
func (s *server) dropLost() {
	for _, c := range s.clientsOpen() {
		if why := s.endOf(s.Peers.Of(c.conn.Key())); why != nil && c.leave() {
			s.Log(fmt.Sprintf("%s is closed: %v", c.conn.RemoteAddr(), why))
			go c.goodbye(fmt.Sprintf("%s closes the connection: %v", s.HostName, why))
		}
	}
}

// leave returns true the first time that this session is asked to leave.
func (c *session) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.leaving
	c.leaving = true
	return first
}

// clientsOpen returns the sessions of the clients that are connected.
func (s *server) clientsOpen() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var clients []*session
	for _, c := range s.open {
		if c != nil {
			clients = append(clients, c)
		}
	}
	return clients
}

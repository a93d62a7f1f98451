package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/peer/executor"
)

// Limits of one server.
const (
	maxConnections = 16
	maxOfOneUser   = 8
	maxAnswering   = 2
	silentFor      = time.Minute
	readWithin     = 10 * time.Second
)

// Config says what a server answers, to which group, and where.
type Config struct {
	Local   Local
	Version string // of the program
	Socket  string // path; empty: DefaultSocket. Ignored if systemd passes a socket
	// Orders carries out signed orders of a fleet; nil: this agent takes none.
	Orders *executor.Executor
	Group  string       // name or number of the group that has access besides root; empty: none
	Log    func(string) // receives one line per refused connection, from several goroutines; may be nil
}

// peer is the user at the other end of a connection.
type peer struct {
	uid    uint32
	groups []uint32 // the primary one first
}

// client is one user with connections.
type client struct {
	connections int
	// turn is held while one question of this user is answered: one that reads no answers keeps the
	// others waiting no longer than that.
	turn chan struct{}
}

// server is a running server.
type server struct {
	Config
	listener  net.Listener
	identify  func(net.Conn) (peer, error)
	uid       uint32
	group     int64 // -1: none
	answering chan struct{}
	silent    time.Duration // see silentFor
	reading   time.Duration // see readWithin
	now       func() time.Time

	mu      sync.Mutex
	users   map[uint32]*client
	open    map[net.Conn]bool
	history cached
	rules   counted
	done    bool
}

func newServer(c Config, listener net.Listener, identify func(net.Conn) (peer, error), uid uint32,
	group int64) *server {
	if c.Log == nil {
		c.Log = func(string) {}
	}
	return &server{
		Config: c, listener: listener, identify: identify, uid: uid, group: group,
		answering: make(chan struct{}, maxAnswering),
		silent:    silentFor, reading: readWithin, now: time.Now, users: make(map[uint32]*client),
		open: make(map[net.Conn]bool),
	}
}

// serve answers until ctx ends, and then returns nil.
func (s *server) serve(ctx context.Context) error {
	var talks sync.WaitGroup
	defer talks.Wait()
	stop := context.AfterFunc(ctx, s.end)
	defer stop()
	defer s.end()
	err := incoming.Connections(ctx, s.listener.Accept, incoming.Log(s.Log), func(conn net.Conn) {
		who, err := s.admit(conn)
		if err != nil {
			s.Log(fmt.Sprintf("turned away: %v", err))
			_ = conn.Close() // nothing was sent
			return
		}
		talks.Go(func() {
			defer s.release(conn, who)
			s.talk(ctx, conn, who)
		})
	})
	if err != nil {
		return fmt.Errorf("accept on %s: %w", s.listener.Addr(), err)
	}
	return nil
}

// end closes the listener and all connections.
func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	_ = s.listener.Close() // closing twice is harmless
	for conn := range s.open {
		_ = conn.Close()
	}
}

// admit registers a connection, or returns why it is refused.
func (s *server) admit(conn net.Conn) (peer, error) {
	who, err := s.identify(conn)
	if err != nil {
		return who, err
	}
	if !s.may(who) {
		return who, fmt.Errorf("user %d: neither root, nor user %d, nor in group %d", who.uid, s.uid, s.group)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done:
		return who, net.ErrClosed
	case len(s.open) >= maxConnections && who.uid != 0:
		return who, fmt.Errorf("user %d: there are %d connections already", who.uid, maxConnections)
	}
	u := s.users[who.uid]
	if u == nil {
		u = &client{turn: make(chan struct{}, 1)}
		s.users[who.uid] = u
	}
	if u.connections >= maxOfOneUser {
		return who, fmt.Errorf("user %d: has %d connections already", who.uid, maxOfOneUser)
	}
	u.connections++
	s.open[conn] = true
	return who, nil
}

func (s *server) release(conn net.Conn, who peer) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
	if u := s.users[who.uid]; u.connections > 1 {
		u.connections--
	} else {
		delete(s.users, who.uid)
	}
}

// may reports whether a user has access.
func (s *server) may(who peer) bool {
	if who.uid == 0 || who.uid == s.uid {
		return true
	}
	for _, g := range who.groups {
		if int64(g) == s.group {
			return true
		}
	}
	return false
}

// talk answers one connection until it ends.
func (s *server) talk(ctx context.Context, conn net.Conn, who peer) {
	in := bufio.NewReaderSize(conn, maxQuestion+2) // the few orders are longer
	for {
		if conn.SetReadDeadline(s.now().Add(s.silent)) != nil {
			return
		}
		line, err := readLine(in, maxOrder)
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
		var q question
		if err == nil {
			q, err = parseQuestion(line)
		}
		if err != nil {
			_ = s.reply(conn, failure(err)) // the connection ends even if the error cannot be sent
			return
		}
		if s.answerTo(ctx, conn, who, q) != nil {
			return
		}
	}
}

// answerTo answers one question when its turn has come: that of its user first, and then one of
// all. An answer is large, so its writing is part of the turn, and a client may take readWithin for
// it.
func (s *server) answerTo(ctx context.Context, conn net.Conn, who peer, q question) error {
	s.mu.Lock()
	turns := []chan struct{}{s.users[who.uid].turn, s.answering}
	s.mu.Unlock()
	for _, turn := range turns {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.reply(conn, s.answer(ctx, q))
}

func (s *server) reply(conn net.Conn, line []byte) error {
	if err := conn.SetWriteDeadline(s.now().Add(s.reading)); err != nil {
		return err
	}
	_, err := conn.Write(line)
	return err
}

// errNoNetlink is what a unit with RestrictAddressFamilies= answers to a reader of rules.
const errNoNetlink = syscall.EAFNOSUPPORT

// answer returns the line that answers a question.
func (s *server) answer(ctx context.Context, q question) []byte {
	var a answer
	var err error
	switch q.Ask {
	case askHello:
		a.Version, a.State = s.Version, s.Local.Dir
	case askStamp:
		a.Stamp, err = s.Local.Stamp(ctx)
	case askHistory:
		s.mu.Lock()
		a.Changes, err = s.history.history(ctx, s.Local, s.now())
		s.mu.Unlock()
	case askOrder:
		if err = s.takesOrders(); err == nil {
			done := s.Orders.Execute(ctx, q.Order)
			a.Order = &done
		}
	case askOrders:
		if err = s.takesOrders(); err == nil {
			var report executor.Report
			report, err = s.Orders.Report(ctx, q.ID)
			a.Report = &report
		}
	case askRules:
		s.mu.Lock()
		a.Rules, a.Left, err = s.rules.rules(ctx, s.Local, s.now())
		s.mu.Unlock()
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, errNoNetlink) {
			err = fmt.Errorf("%w for this agent: %w", fs.ErrNotExist, err) // its unit lets it read no rules
		}
	case askRuns, askMeasurements:
		a.Runs, err = s.Local.Runs(ctx, q.kind())
	case askRun, askMeasurement:
		var doc []byte
		if doc, err = s.Local.Run(ctx, q.kind(), q.ID); err == nil {
			return document(doc)
		}
	}
	if err != nil {
		return failure(err)
	}
	line, err := json.Marshal(a)
	if err != nil {
		return failure(err)
	}
	if len(line) > maxAnswer {
		return failure(ErrTooLarge)
	}
	return append(line, '\n')
}

// errNoOrders reports an agent that takes no orders.
var errNoOrders = errors.New("this agent takes no orders; root starts it with --orders")

func (s *server) takesOrders() error {
	if s.Orders == nil {
		return errNoOrders
	}
	return nil
}

// document returns an answer with a stored document, whose numbers keep their spelling.
func document(doc []byte) []byte {
	var b bytes.Buffer
	_, _ = io.WriteString(&b, `{"document":`) // a write to a buffer cannot fail
	if err := json.Compact(&b, doc); err != nil {
		return failure(fmt.Errorf("the document is damaged: %w", err))
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func failure(err error) []byte {
	line, marshalErr := json.Marshal(answer{Error: err.Error(), Missing: errors.Is(err, fs.ErrNotExist)})
	if marshalErr != nil {
		return []byte(`{"error":"` + errNotAsked.Error() + `"}` + "\n")
	}
	return append(line, '\n')
}

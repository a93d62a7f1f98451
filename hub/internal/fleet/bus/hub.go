package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// MaxMessage is the largest message, in bytes.
const MaxMessage = 1 << 20

// Bounds of the embedded server. With the default of two seconds for a TLS handshake, a fifth of
// 3000 hosts that return at once is refused.
const (
	handshakeWithin = 30 * time.Second
	pendingAtMost   = 64 << 20 // bytes that wait for one connection
	pingEvery       = 30 * time.Second
	maxControlLine  = 4 << 10
)

// Options are what a hub needs.
type Options struct {
	Trust *Trust
	Log   *slog.Logger // nil: none

	// For [Embed].
	Listen    string // HOST:PORT of the bus
	Authority *Authority
	MaxHosts  int // connections at a time; 0: 65 536

	// For [Attach].
	URLs  []string // of the cluster's servers: tls://HOST:PORT
	Roots []byte   // PEM certificates that sign the servers' own; empty: those of the system
	// name in the servers' certificates; empty: the name in each URL
	ServerName string
}

// Hub is the middle of a fleet.
type Hub struct {
	trust *Trust
	log   *slog.Logger
	own   *server.Server // nil: the servers are elsewhere
	store *server.MemAccResolver
	urls  []string
	roots []byte
	name  string // in the servers' certificates

	mu     sync.Mutex
	system *nats.Conn // to publish claims at servers elsewhere
}

// ownAttempts is how often the hub connects to its own server before it gives up.
const ownAttempts = 10

// Embed starts a server in this process. It listens when Embed returns.
func Embed(o Options) (*Hub, error) {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("bus %s: %w", o.Listen, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535 {
		return nil, fmt.Errorf("bus %s: not a port", o.Listen)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	operator, err := jwt.DecodeOperatorClaims(o.Trust.operator)
	if err != nil {
		return nil, err
	}
	store := &server.MemAccResolver{}
	account, text := o.Trust.accountNow()
	for key, claims := range map[string]string{account: text, operator.SystemAccount: o.Trust.system} {
		if err := store.Store(key, claims); err != nil {
			return nil, err
		}
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "linerate-hub", Host: host, Port: number, NoSigs: true, NoLog: true,
		MaxConn: o.MaxHosts, MaxPayload: MaxMessage, MaxPending: pendingAtMost, MaxControlLine: maxControlLine,
		TLS: true, TLSConfig: o.Authority.Server(), TLSTimeout: handshakeWithin.Seconds(), TLSHandshakeFirst: true,
		// The server's first ping, after two seconds, meets hosts that still wait for the answer to their
		// greeting where thousands return at once: nats.go takes it for a fault and begins anew.
		AuthTimeout: handshakeWithin.Seconds(), PingInterval: pingEvery, DisableShortFirstPing: true,
		WriteDeadline: 10 * time.Second, TrustedOperators: []*jwt.OperatorClaims{operator},
		SystemAccount: operator.SystemAccount, AccountResolver: store,
	})
	if err != nil {
		return nil, fmt.Errorf("bus %s: %w", o.Listen, err)
	}
	h := &Hub{trust: o.Trust, log: logger(o.Log), own: s, store: store}
	s.SetLoggerV2(serverLog{h.log}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(handshakeWithin) {
		s.Shutdown()
		return nil, fmt.Errorf("bus %s: the server does not listen; is the address in use?", o.Listen)
	}
	return h, nil
}

// Attach uses servers that run elsewhere, with the configuration that [Trust.Resolver] prints.
func Attach(o Options) (*Hub, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("bus: no servers are named")
	}
	return &Hub{trust: o.Trust, log: logger(o.Log), urls: o.URLs, roots: o.Roots, name: o.ServerName}, nil
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// Address returns the address on which an embedded server listens; nil for servers elsewhere.
func (h *Hub) Address() *net.TCPAddr {
	if h.own == nil {
		return nil
	}
	a, _ := h.own.Addr().(*net.TCPAddr)
	return a
}

// Publish makes the trust's revocations known to the servers, which then end the connections of
// revoked keys.
func (h *Hub) Publish(ctx context.Context) error {
	key, text := h.trust.accountNow()
	if h.own == nil {
		return h.push(ctx, key, text)
	}
	if err := h.store.Store(key, text); err != nil {
		return err
	}
	claims, err := jwt.DecodeAccountClaims(text)
	if err != nil {
		return err
	}
	account, err := h.own.LookupAccount(key)
	if err != nil {
		return fmt.Errorf("publish claims of the fleet: %w", err)
	}
	h.own.UpdateAccountClaims(account, claims)
	return nil
}

// push sends claims to servers elsewhere.
func (h *Hub) push(ctx context.Context, key, text string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.system == nil {
		c, err := h.open("linerate-hub claims", h.trust.systemSigner, "")
		if err != nil {
			return fmt.Errorf("publish claims of the fleet: %w", err)
		}
		h.system = c
	}
	m, err := h.system.RequestWithContext(ctx, "$SYS.REQ.CLAIMS.UPDATE", []byte(text))
	if err != nil {
		return fmt.Errorf("publish claims of account %s: %w", key, err)
	}
	var answer struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Error != nil {
		return fmt.Errorf("publish claims of account %s: the servers answer %.200q", key, m.Data)
	}
	return nil
}

// Connect opens a connection of the hub itself, which may read and write every subject of the
// fleet. A bulk reader needs one of its own: a connection that falls behind is cut, with all its
// subscriptions.
func (h *Hub) Connect(name string) (*Conn, error) {
	account, _ := h.trust.accountNow()
	c, err := h.open(name, h.trust.accountSigner, account)
	// While ten thousand hosts return at once, an embedded server can end the connection of its own
	// process before it has answered.
	for attempt := 1; err != nil && h.own != nil && attempt < ownAttempts; attempt++ {
		h.log.Warn("bus: connection of the hub itself: "+err.Error(), "connection", name)
		time.Sleep(time.Duration(attempt) * time.Second)
		c, err = h.open(name, h.trust.accountSigner, account)
	}
	if err != nil {
		return nil, fmt.Errorf("connect %s to the bus: %w", name, err)
	}
	return newConn(c), nil
}

// open connects with a new key that the signer signs. account is the account's key if the signer is
// a signing key of it.
func (h *Hub) open(name string, signer nkeys.KeyPair, account string) (*nats.Conn, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name, claims.IssuerAccount = name, account
	text, err := claims.Encode(signer)
	if err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.Timeout(handshakeWithin),
		nats.UserJWT(func() (string, error) { return text, nil }, pair.Sign),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			h.log.Warn("bus: "+err.Error(), "connection", name, "subject", subject)
		}),
	}
	if h.own != nil {
		return nats.Connect("", append(options, nats.InProcessServer(h.own))...)
	}
	if len(h.roots) > 0 {
		config, err := Client(h.roots, h.name)
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Secure(config), nats.TLSHandshakeFirst())
	}
	return nats.Connect(strings.Join(h.urls, ","), options...)
}

// Cut returns how many connections the embedded server has cut because they fell behind.
func (h *Hub) Cut() int64 {
	if h.own == nil {
		return 0
	}
	return h.own.NumSlowConsumers()
}

// Connections returns the number of connections at the embedded server, those of the hub included.
func (h *Hub) Connections() int {
	if h.own == nil {
		return 0
	}
	return h.own.NumClients()
}

// Close ends all connections and the embedded server.
func (h *Hub) Close() {
	h.mu.Lock()
	if h.system != nil {
		h.system.Close()
	}
	h.mu.Unlock()
	if h.own != nil {
		h.own.Shutdown()
		h.own.WaitForShutdown()
	}
}

// serverLog passes on what the embedded server reports as a problem of its own. What hosts do wrong
// (a handshake that ends early) is no problem of the hub.
type serverLog struct{ to *slog.Logger }

func (l serverLog) Noticef(string, ...any) {}
func (l serverLog) Debugf(string, ...any)  {}
func (l serverLog) Tracef(string, ...any)  {}

func (l serverLog) Warnf(format string, v ...any) { l.to.Debug("bus: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Errorf(format string, v ...any) { l.to.Debug("bus: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Fatalf(format string, v ...any) { l.to.Error("bus: " + fmt.Sprintf(format, v...)) }

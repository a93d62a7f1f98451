package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// DefaultAddress is the default address: this host alone.
const DefaultAddress = "127.0.0.1:7071"

// Options of a server. The zero value listens on [DefaultAddress], open to this host.
type Options struct {
	// Address is an IP address and a port, "localhost:PORT", or ":PORT" for every address of the
	// host. Empty: DefaultAddress.
	Address string
	// DataDir is the directory of the server's own certificate.
	DataDir string
	// PasswordFile holds the hash of the password, as WritePassword writes it. Empty: no password.
	PasswordFile string
	// ClientCA is a file of PEM certificates of authorities. A client with a certificate of one of
	// them needs no password. Without a password every client needs one.
	ClientCA string
	// Certificate and Key are PEM files. Empty: the server makes a certificate when it needs one.
	Certificate, Key string
	// TLS enables TLS on the loopback address too.
	TLS bool
	// Names are further host names of this server: what is between "https://" and the port.
	Names []string
	// Open are paths that need no password, "/healthz" for instance.
	Open []string
	// Log gets errors; may be nil.
	Log *slog.Logger

	now         func() time.Time // tests set it
	readTimeout time.Duration    // tests set it; 0: readTimeout
}

// Bounds of every server: a request must arrive, and its answer leave, within its time.
const (
	maxConnections   = 256
	maxAtOnce        = 32
	maxBodies        = 64 // requests whose body arrives at a time
	maxHeader        = 64 << 10
	maxBody          = 1 << 20
	readTimeout      = 15 * time.Second
	writeTimeout     = 60 * time.Second
	stallTimeout     = 10 * time.Second // for the next part of an answer, some 32 KiB
	idleTimeout      = 2 * time.Minute
	shutdownPatience = 5 * time.Second
)

// Server is a bound address. It answers once Serve runs.
type Server struct {
	listener    *bounded
	options     Options
	gate        *gate // nil: open
	tls         *tls.Config
	fingerprint string
	loopback    bool
}

// Listen checks the options and binds the address. The server answers after [Server.Serve]. Listen
// refuses an address that other hosts can reach if it has neither a password nor an authority for
// clients.
func Listen(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	o.readTimeout = cmp.Or(o.readTimeout, readTimeout)
	loopback, err := onLoopback(o.Address)
	if err != nil {
		return nil, err
	}
	if !loopback && o.PasswordFile == "" && o.ClientCA == "" {
		return nil, fmt.Errorf(
			"listen on %s: other hosts can reach this address; set a password or an authority for client "+
				"certificates first", o.Address)
	}
	s := &Server{options: o, loopback: loopback}
	if o.PasswordFile != "" {
		h, err := readPassword(o.PasswordFile)
		if err != nil {
			return nil, err
		}
		s.gate = newGate(h, o.now)
	}
	if !loopback || o.TLS || o.Certificate != "" || o.ClientCA != "" {
		if err := s.secure(); err != nil {
			return nil, err
		}
	}
	// Bind "localhost" as an address, so that no resolver can redirect it.
	address := o.Address
	if port, ok := strings.CutPrefix(address, "localhost:"); ok {
		address = "127.0.0.1:" + port
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", o.Address, err)
	}
	s.listener = newBounded(l, maxConnections)
	return s, nil
}

// onLoopback reports whether only this host can reach an address.
func onLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("address %q: %w; give it as 127.0.0.1:7071", address, err)
	}
	if host == "localhost" {
		return true, nil
	}
	if host == "" {
		return false, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false, fmt.Errorf("address %q: %q is not an IP address; give one of this host's", address, host)
	}
	return ip.Unmap().IsLoopback(), nil
}

// Addr returns the bound address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the address for a browser on this host.
func (s *Server) URL() string {
	ip := s.address().IP
	if ip.IsUnspecified() {
		return s.url("localhost")
	}
	return s.url(ip.String())
}

// PublicURL returns the address under which other hosts reach this server: with its first name, or,
// if it listens on all addresses, with the host's name.
func (s *Server) PublicURL() string {
	if s.loopback {
		return s.URL()
	}
	if len(s.options.Names) > 0 {
		return s.url(s.options.Names[0])
	}
	if name, err := os.Hostname(); err == nil && s.address().IP.IsUnspecified() {
		return s.url(name)
	}
	return s.URL()
}

func (s *Server) address() *net.TCPAddr { return s.listener.Addr().(*net.TCPAddr) }

func (s *Server) url(host string) string {
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s/", scheme, net.JoinHostPort(host, strconv.Itoa(s.address().Port)))
}

// Fingerprint returns the SHA-256 of the server's certificate, in hexadecimal as openssl prints it;
// empty without TLS.
func (s *Server) Fingerprint() string { return s.fingerprint }

// Serve answers requests until the context ends, and then lets requests under way finish, for some
// seconds. It then returns nil.
func (s *Server) Serve(ctx context.Context, h http.Handler) error {
	server := &http.Server{
		Handler:           s.frame(h),
		TLSConfig:         s.tls,
		ReadHeaderTimeout: s.options.readTimeout / 2,
		ReadTimeout:       s.options.readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// More than maxAtOnce of one connection would only be refused.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxAtOnce},
		// Clients cause failed handshakes and the like, in any number.
		ErrorLog:    slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState:   s.listener.state,
		ConnContext: s.listener.remember,
	}
	done := make(chan error, 1)
	go func() {
		if s.tls != nil {
			done <- server.ServeTLS(s.listener, "", "")
			return
		}
		done <- server.Serve(s.listener)
	}()
	select {
	case err := <-done:
		return fmt.Errorf("serve on %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		_ = server.Close()
	}
	<-done
	return nil
}

// Close closes an address that was never served.
func (s *Server) Close() error { return s.listener.Close() }

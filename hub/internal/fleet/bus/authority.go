package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"path/filepath"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// ServerName is the name in the certificate of every hub. Hosts pin the authority, so a hub may
// change its address without a new certificate.
const ServerName = "linerate-hub"

// How long certificates are valid. The authority outlives any host; the certificate of the hub is
// made new at every start. Both begin a year early, because the clocks of hosts may be behind.
const (
	authorityFor   = 30 * 365 * 24 * time.Hour
	certificateFor = 10 * 365 * 24 * time.Hour
	early          = 365 * 24 * time.Hour
)

// Authority is the certificate authority of one hub. It signs the certificate of that hub and
// nothing else.
type Authority struct {
	PEM         []byte   // its certificate
	Fingerprint [32]byte // SHA-256 of its certificate (DER)

	certificate tls.Certificate
	tickets     [32]byte // the key of session tickets
}

// OpenAuthority reads the authority below dir, and makes it if there is none.
func OpenAuthority(fsys durable.FS, dir string, now time.Time) (*Authority, error) {
	if err := durable.MkdirAll(fsys, dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the authority: %w", err)
	}
	name := filepath.Join(dir, "authority.pem")
	both, err := fsys.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if both, err = newAuthority(now); err == nil {
			err = durable.Replace(fsys, name, both, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open authority of the hub: %w", err)
	}
	pair, err := tls.X509KeyPair(both, both)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	ca, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	a := &Authority{Fingerprint: sha256.Sum256(ca.Raw),
		PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: ServerName},
		DNSNames:     []string{ServerName},
		NotBefore:    ca.NotBefore, NotAfter: now.Add(certificateFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("make certificate of the hub: %w", err)
	}
	a.certificate = tls.Certificate{Certificate: [][]byte{der, ca.Raw}, PrivateKey: key}
	// Derived, so that hosts which return after a restart of the hub resume their sessions: ten
	// thousand then need no certificate. Who could derive it has the authority's key, and with it
	// everything. Each session still has an ephemeral key exchange of its own.
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, err
	}
	tickets, err := hkdf.Key(sha256.New, secret, nil, "linerate hub session tickets 1", len(a.tickets))
	if err != nil {
		return nil, err
	}
	copy(a.tickets[:], tickets)
	return a, nil
}

// newAuthority returns a self-signed certificate and its key as PEM.
func newAuthority(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "linerate hub authority"},
		NotBefore:    now.Add(-early), NotAfter: now.Add(authorityFor),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}

// Server returns the configuration of a TLS server of this hub. A client resumes a session at every
// server of the hub, and after a restart of the hub.
func (a *Authority) Server() *tls.Config {
	c := &tls.Config{Certificates: []tls.Certificate{a.certificate}, MinVersion: tls.VersionTLS13}
	c.SetSessionTicketKeys([][32]byte{a.tickets})
	return c
}

// Sessions returns a place for the sessions of one client with one hub.
func Sessions() tls.ClientSessionCache { return tls.NewLRUClientSessionCache(1) }

// Pinned returns the configuration of a client that knows only the fingerprint of the authority. It
// accepts exactly one chain: the hub's certificate, signed by the certificate with that
// fingerprint. A session is resumed if sessions, which may be nil, has one: only clients with the
// same fingerprint may share it.
func Pinned(fingerprint [32]byte, sessions tls.ClientSessionCache) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: ServerName, ClientSessionCache: sessions,
		InsecureSkipVerify: true, // the function below verifies, against a root that only the handshake shows
		VerifyConnection: func(s tls.ConnectionState) error {
			if s.DidResume { // by the server that this function accepted when the session began
				return nil
			}
			for _, c := range s.PeerCertificates[1:] {
				if sha256.Sum256(c.Raw) != fingerprint {
					continue
				}
				roots := x509.NewCertPool()
				roots.AddCert(c)
				// At the time of the certificate: the fingerprint says which hub it is, and a host whose clock
				// is wrong by years must reach its hub all the same.
				_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: ServerName,
					CurrentTime: s.PeerCertificates[0].NotBefore})
				return err
			}
			return ErrOtherHub
		},
	}
}

// ErrOtherHub reports that the hub at an address is not the one that made the invitation.
var ErrOtherHub = errors.New("the hub at this address has another certificate authority than the invitation names")

// Client returns the configuration of a client that knows the authority's certificate as PEM.
func Client(roots []byte, serverName string) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, errors.New("read certificates of the hub: none is there")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: serverName}, nil
}

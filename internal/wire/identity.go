package wire

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// alpn names the protocol inside TLS (RFC 7301). A change of the framing, or of the derivation
// below, needs another name.
const alpn = "linerate/1"

// The roles have separate identities, so that neither side accepts its own certificate.
const (
	serverRole = "server"
	clientRole = "client"
)

// errForeignProtocol reports that the other end of a TLS handshake did not agree on our ALPN name.
var errForeignProtocol = errors.New("it speaks TLS, but not " + alpn)

// identity derives the Ed25519 key of one role. HKDF needs no salt (RFC 5869 §3.1), and two hosts
// that share only the key would have no common one. The names of the protocol version and of the
// role separate the keys of different uses (§3.2). A key of 130 random bits needs no slow hash,
// because it cannot be guessed.
func (k Key) identity(role string) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, k.symbols[:], nil, alpn+" ed25519 seed of "+role, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive %s identity: %w", role, err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// certificate returns a self-signed TLS certificate for the identity of one role. It is always the
// same: Ed25519 signatures are deterministic, and everything in the template is fixed. It never
// expires, because hosts under test often have wrong clocks, and the certificate proves only the
// possession of the key.
func (k Key) certificate(role string) (tls.Certificate, error) {
	private, err := k.identity(role)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "linerate " + role},
		NotBefore:    time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280 4.1.2.5: no end
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make %s certificate: %w", role, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// tlsConfig returns the configuration of one role. It ignores certification authorities, names and
// dates: the peer must hold the private key derived from the shared secret. Therefore its public
// key is compared with the derived one, and TLS itself proves the possession. That is why
// InsecureSkipVerify is right here: it disables only the chain and name checks, and
// VerifyConnection runs in every handshake. Tickets are off, so no resumption bypasses it.
func (k Key) tlsConfig(role, peerRole string) (*tls.Config, error) {
	if k.IsZero() {
		return nil, fmt.Errorf("derive identities: %w: no key given", ErrBadKey)
	}
	own, err := k.certificate(role)
	if err != nil {
		return nil, err
	}
	peer, err := k.identity(peerRole)
	if err != nil {
		return nil, err
	}
	want := peer.Public().(ed25519.PublicKey)
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		ServerName:             k.ID(), // sent by clients only, see Keyring
		Certificates:           []tls.Certificate{own},
		NextProtos:             []string{alpn},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol != alpn {
				return errForeignProtocol
			}
			// A chain would be parsed and never used; each side has exactly one certificate.
			if len(state.PeerCertificates) != 1 {
				return ErrWrongKey
			}
			got, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || subtle.ConstantTimeCompare(got, want) != 1 {
				return ErrWrongKey
			}
			return nil
		},
	}, nil
}

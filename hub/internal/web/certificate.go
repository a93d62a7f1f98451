package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/credential"
	"github.com/linerate/linerate/internal/base/durable"
)

// The server's own certificate, in its data directory: key and certificate in one file, so that a
// crash cannot separate them.
const ownCertificate = "web-certificate.pem"

// certificateLife is the longest lifetime that browsers on every system accept for a certificate
// that a user trusts by hand.
const certificateLife = 825 * 24 * time.Hour

// secure prepares TLS: the certificate, and the authorities of client certificates.
func (s *Server) secure() error {
	o := s.options
	var (
		pair tls.Certificate
		err  error
	)
	switch {
	case (o.Certificate == "") != (o.Key == ""):
		return errors.New("certificate and key: give both files or neither")
	case o.Certificate != "":
		if pair, err = tls.LoadX509KeyPair(o.Certificate, o.Key); err != nil {
			return fmt.Errorf("read certificate %s: %w", o.Certificate, err)
		}
	default:
		if pair, err = s.own(); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(pair.Certificate[0])
	s.fingerprint = colons(sum[:])
	s.tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if o.ClientCA == "" {
		return nil
	}
	if s.tls.ClientCAs, err = credential.Authorities(o.ClientCA); err != nil {
		return fmt.Errorf("authority of clients: %w", err)
	}
	s.tls.ClientAuth = tls.RequireAndVerifyClientCert
	if o.PasswordFile != "" {
		s.tls.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return nil
}

// own reads the certificate of the data directory, or makes it. It replaces one that ends within a
// month, which changes the fingerprint.
func (s *Server) own() (tls.Certificate, error) {
	if s.options.DataDir == "" {
		return tls.Certificate{},
			errors.New("certificate: no data directory to keep one in; give a certificate and its key")
	}
	path := filepath.Join(s.options.DataDir, ownCertificate)
	b, err := os.ReadFile(path)
	if err == nil {
		pair, err := tls.X509KeyPair(b, b)
		if err != nil {
			return tls.Certificate{},
				fmt.Errorf("read certificate %s: %w; remove the file, and the hub makes a new one", path, err)
		}
		if pair.Leaf.NotAfter.After(s.options.now().Add(30 * 24 * time.Hour)) {
			return pair, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, fmt.Errorf("read certificate: %w", err)
	}
	if b, err = selfSigned(s.names(), s.options.now()); err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	disk := durable.OS()
	if err := durable.MkdirAll(disk, s.options.DataDir, 0o700); err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	if err := durable.Replace(disk, path, b, 0o600); err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.X509KeyPair(b, b)
}

// names returns the names and addresses of the server's own certificate.
func (s *Server) names() []string {
	all := []string{"localhost", "127.0.0.1", "::1"}
	if h, err := os.Hostname(); err == nil {
		all = append(all, h)
	}
	if host, _, err := net.SplitHostPort(s.options.Address); err == nil && host != "" {
		all = append(all, host)
	}
	return append(all, s.options.Names...)
}

func selfSigned(names []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "linerate-hub"},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// It is no authority: a stolen key cannot sign for another name.
		BasicConstraintsValid: true,
	}
	seen := make(map[string]bool)
	for _, n := range names {
		if seen[n] {
			continue
		}
		seen[n] = true
		if ip := net.ParseIP(n); ip == nil {
			leaf.DNSNames = append(leaf.DNSNames, n)
		} else if !ip.IsUnspecified() {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
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

// colons formats a hash as openssl does.
func colons(sum []byte) string {
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = strings.ToUpper(hex.EncodeToString([]byte{b}))
	}
	return strings.Join(parts, ":")
}

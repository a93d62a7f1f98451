package web

import (
	"bytes"
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
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/credential"
	"github.com/linerate/linerate/internal/base/durable"
)

// The server's own certificate, in its data directory. ownSecret has key and certificate in one
// file, so that a crash cannot separate them; only the server reads it. ownCertificate is for
// others: the certificate alone, to be copied to clients.
const (
	ownSecret      = "web-key.pem"
	ownCertificate = "web-certificate.pem"
)

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
// month or lacks a name of this server, which changes the fingerprint.
//
// Older versions had the key in the file that users copy to clients. A key that may have been
// copied is no secret: it is not used any more.
func (s *Server) own() (tls.Certificate, error) {
	dir := s.options.DataDir
	if dir == "" {
		return tls.Certificate{},
			errors.New("certificate: no data directory to keep one in; give a certificate and its key")
	}
	disk := durable.OS()
	secret, shared := filepath.Join(dir, ownSecret), filepath.Join(dir, ownCertificate)
	copied, sharedErr := disk.ReadFile(shared)
	b, err := disk.ReadFile(secret)
	switch {
	case err == nil:
		pair, err := tls.X509KeyPair(b, b)
		if err != nil {
			return tls.Certificate{},
				fmt.Errorf("read certificate %s: %w; remove the file, and the hub makes a new one", secret, err)
		}
		if why := s.outdated(pair.Leaf); why == "" {
			// The copy is written after the secret, so a crash may have left it out.
			if public := publicPart(pair); sharedErr != nil || !bytes.Equal(copied, public) {
				err = durable.Replace(disk, shared, public, 0o644)
			}
			return pair, err
		} else {
			s.options.Log.Warn("making a new certificate: its fingerprint changes", "why", why)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return tls.Certificate{}, fmt.Errorf("read certificate: %w", err)
	case bytes.Contains(copied, []byte("PRIVATE KEY")):
		s.options.Log.Warn("making a new certificate: its fingerprint changes", "why",
			shared+" of an older version holds the key too; delete every copy of it")
	}
	if b, err = selfSigned(s.names(), s.options.now()); err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(b, b)
	if err == nil {
		err = durable.MkdirAll(disk, dir, 0o700)
	}
	if err == nil {
		err = durable.Replace(disk, secret, b, 0o600)
	}
	if err == nil {
		err = durable.Replace(disk, shared, publicPart(pair), 0o644)
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return pair, nil
}

// publicPart returns the certificate of a pair alone, in PEM.
func publicPart(pair tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
}

// outdated returns why a certificate of this server's own can no longer be used, or "". Addresses
// of interfaces change; only what the user has configured must be in it.
func (s *Server) outdated(leaf *x509.Certificate) string {
	if !leaf.NotAfter.After(s.options.now().Add(30 * 24 * time.Hour)) {
		return "the old one ends on " + leaf.NotAfter.UTC().Format(time.DateOnly)
	}
	for _, name := range s.configured() {
		ip := net.ParseIP(name)
		if !slices.Contains(leaf.DNSNames, name) && !slices.ContainsFunc(leaf.IPAddresses, ip.Equal) {
			return "the old one lacks the name " + name
		}
	}
	return ""
}

// configured returns the names and addresses that the user gave.
func (s *Server) configured() []string {
	var all []string
	if host, _, err := net.SplitHostPort(s.options.Address); err == nil && host != "" {
		host, _, _ = strings.Cut(host, "%") // a certificate knows no zone
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			all = append(all, host)
		}
	}
	return append(all, s.options.Names...)
}

// names returns the names and addresses of the server's own certificate: those that the user gave,
// and all under which clients reach a server that listens everywhere.
func (s *Server) names() []string {
	all := []string{"localhost", "127.0.0.1", "::1"}
	if h, err := os.Hostname(); err == nil {
		all = append(all, h)
	}
	all = append(all, s.configured()...)
	host, _, err := net.SplitHostPort(s.options.Address)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return all
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return all // the names remain
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			all = append(all, n.IP.String())
		}
	}
	return all
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

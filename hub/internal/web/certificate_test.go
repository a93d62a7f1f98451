package web

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shared returns the certificate that users copy.
func shared(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, ownCertificate))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "PRIVATE") {
		t.Fatal("it holds the key")
	}
	block := strings.TrimSpace(string(b))
	if strings.Count(block, "BEGIN") != 1 {
		t.Fatalf("%d blocks", strings.Count(block, "BEGIN"))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		t.Fatal("no certificate")
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, ownCertificate), filepath.Join(dir, ownSecret))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// TestKeyThatWasCopied starts on the data of an older version, whose certificate file holds the
// key.
func TestKeyThatWasCopied(t *testing.T) {
	dir := t.TempDir()
	b, err := selfSigned([]string{"localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ownCertificate), b, 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := tls.X509KeyPair(b, b)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, Options{Address: "127.0.0.1:0", TLS: true, DataDir: dir}, hello)
	if leaf := shared(t, dir); leaf.Equal(old.Leaf) {
		t.Error("the key that was in the copied file is still used")
	}
}

// TestCertificateNames checks that the certificate holds for the address that the server listens
// on, and for a new one.
func TestCertificateNames(t *testing.T) {
	dir := t.TempDir()
	first := serve(t, Options{Address: "127.0.0.1:0", TLS: true, DataDir: dir}, hello)
	if err := shared(t, dir).VerifyHostname("127.0.0.1"); err != nil {
		t.Error(err)
	}
	moved := serve(t, Options{Address: "127.0.0.7:0", TLS: true, DataDir: dir, Names: []string{"hub.example"}}, hello)
	if moved.Fingerprint() == first.Fingerprint() {
		t.Error("the certificate lacks the new address and stays")
	}
	for _, name := range []string{"127.0.0.7", "hub.example", "localhost"} {
		if err := shared(t, dir).VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if again := serve(t, Options{Address: "127.0.0.7:0", TLS: true, DataDir: dir}, hello); again.Fingerprint() !=
		moved.Fingerprint() {
		t.Error("the same address, and another certificate")
	}
	// Everywhere: under every address of this host.
	everywhere := t.TempDir()
	serve(t, Options{Address: "0.0.0.0:0", DataDir: everywhere, PasswordFile: cheap(t, secret)}, hello)
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			if err := shared(t, everywhere).VerifyHostname(n.IP.String()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCopyIsRepaired starts after a crash between the two files.
func TestCopyIsRepaired(t *testing.T) {
	dir := t.TempDir()
	o := Options{Address: "127.0.0.1:0", TLS: true, DataDir: dir}
	first := serve(t, o, hello)
	if err := os.Remove(filepath.Join(dir, ownCertificate)); err != nil {
		t.Fatal(err)
	}
	if again := serve(t, o, hello); again.Fingerprint() != first.Fingerprint() {
		t.Error("the key was made anew")
	}
	shared(t, dir)
}

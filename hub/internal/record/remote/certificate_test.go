package remote_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record/remote"
)

// TestOwnCertificate shows a receiver that asks for one the certificate that is in the files at
// that time: they are renewed while a hub runs.
func TestOwnCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "hub.pem"), filepath.Join(dir, "hub.key")
	write := func(path, kind string, der []byte) {
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	issue := func(name string) {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		leaf := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, own.Public(), own)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalECPrivateKey(own)
		if err != nil {
			t.Fatal(err)
		}
		write(cert, "CERTIFICATE", der)
		write(key, "EC PRIVATE KEY", secret)
	}
	var mu sync.Mutex
	var shown []string
	r := newReceiver(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			mu.Lock()
			shown = append(shown, req.TLS.PeerCertificates[0].Subject.CommonName)
			mu.Unlock()
			w.Header().Set("Connection", "close")
			h.ServeHTTP(w, req)
		}))
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		s.StartTLS()
		return s
	})
	ca := filepath.Join(dir, "ca.pem")
	write(ca, "CERTIFICATE", r.Certificate().Raw)

	stranger := start(t, remote.Options{URL: r.URL, CAFile: ca})
	stranger.Append(reading(0))
	r.await(t, func() bool { return stranger.Status().Failures > 0 })

	issue("first")
	w := start(t, remote.Options{URL: r.URL, CAFile: ca, CertFile: cert, KeyFile: key})
	w.Append(reading(0))
	r.await(t, func() bool { return w.Status().SentSamples == 2 })
	issue("second")
	w.Append(reading(1))
	r.await(t, func() bool { return w.Status().SentSamples == 4 })
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"first", "second"}; !slices.Equal(shown, want) {
		t.Errorf("shown %q, want %q", shown, want)
	}
	if _, err := remote.New(remote.Options{URL: r.URL, CertFile: cert, KeyFile: cert}); err == nil {
		t.Error("a certificate was accepted as a key")
	}
}

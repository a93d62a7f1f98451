package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestOtherHostsNeedASecret checks that nothing is open beyond this host.
func TestOtherHostsNeedASecret(t *testing.T) {
	password, dir := cheap(t, secret), t.TempDir()
	_, ca := authority(t)
	for _, c := range []struct {
		name string
		o    Options
		tls  bool
		want string // in the error
	}{
		{"loopback", Options{Address: "127.0.0.1:0"}, false, ""},
		{"loopback by name", Options{Address: "localhost:0"}, false, ""},
		{"loopback with a password", Options{Address: "127.0.0.1:0", PasswordFile: password}, false, ""},
		{"loopback with TLS", Options{Address: "127.0.0.1:0", TLS: true, DataDir: dir}, true, ""},
		{"all", Options{Address: ":0"}, false, "set a password"},
		{"all, 4", Options{Address: "0.0.0.0:0"}, false, "set a password"},
		{"all, 6", Options{Address: "[::]:0"}, false, "set a password"},
		{"mapped", Options{Address: "[::ffff:192.0.2.1]:0"}, false, "set a password"},
		{"name", Options{Address: "hub.example:0"}, false, "is not an IP address"},
		{"nothing", Options{Address: "7071"}, false, "give it as 127.0.0.1:7071"},
		{"all with a password", Options{Address: "0.0.0.0:0", PasswordFile: password, DataDir: dir}, true, ""},
		{"all with an authority", Options{Address: "0.0.0.0:0", ClientCA: ca, DataDir: dir}, true, ""},
		{"nowhere to keep a certificate", Options{Address: "0.0.0.0:0", PasswordFile: password}, false,
			"no data directory"},
		{"half a certificate", Options{Address: "127.0.0.1:0", Certificate: ca}, false, "both files or neither"},
		{"no such password", Options{Address: "127.0.0.1:0", PasswordFile: filepath.Join(dir, "none")}, false,
			"read password"},
		{"no authority", Options{Address: "127.0.0.1:0", ClientCA: password, DataDir: dir}, false,
			"no certificate in PEM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Listen(c.o)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v, want one with %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if got := strings.HasPrefix(s.URL(), "https://"); got != c.tls || (s.Fingerprint() != "") != c.tls {
				t.Errorf("URL %s, fingerprint %q", s.URL(), s.Fingerprint())
			}
		})
	}
}

// TestPublicURL checks that messages to other hosts have an address that these can use.
func TestPublicURL(t *testing.T) {
	password := cheap(t, secret)
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, name, host string }{
		{"127.0.0.1:0", "", "127.0.0.1"},
		{"127.0.0.1:0", "hub.example", "127.0.0.1"}, // behind a proxy, which has another port
		{"0.0.0.0:0", "", own},
		{":0", "hub.example", "hub.example"},
	} {
		o := Options{Address: c.address, PasswordFile: password, DataDir: t.TempDir()}
		if c.name != "" {
			o.Names = []string{c.name}
		}
		s, err := Listen(o)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(s.PublicURL())
		if err != nil || u.Hostname() != c.host || u.Port() != strconv.Itoa(s.address().Port) || u.Path != "/" ||
			(u.Scheme == "https") != (c.host != "127.0.0.1") {
			t.Errorf("%s, %q: %s, %v", c.address, c.name, s.PublicURL(), err)
		}
		_ = s.Close()
	}
}

// serve runs a server until the test ends, and returns it.
func serve(t *testing.T, o Options, h http.Handler) *Server {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

func get(client *http.Client, url string) (int, string, error) {
	r, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, string(b), err
}

func TestServeAndStop(t *testing.T) {
	s, err := Listen(Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	inside := make(chan bool)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- s.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inside <- true
			<-r.Context().Done() // a query ends with its server
			_, _ = io.WriteString(w, "last words")
		}))
	}()
	answers := make(chan string)
	go func() {
		_, body, _ := get(http.DefaultClient, s.URL())
		answers <- body
	}()
	<-inside
	cancel()
	if got := <-answers; got != "last words" {
		t.Errorf("a request under way got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
	// Not by a connection: the port may be another program's by now.
	if _, err := s.listener.Listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the address is still bound: %v", err)
	}
}

// TestConnectionsGiveTheirPlaceBack opens more connections than there are places, one after the
// other.
func TestConnectionsGiveTheirPlaceBack(t *testing.T) {
	s := serve(t, Options{}, hello)
	for i := range maxConnections + 10 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if code, _, err := get(client, s.URL()); err != nil || code != 200 {
			t.Fatalf("connection %d: %d, %v", i, code, err)
		}
	}
}

func TestOwnCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	now := time.Now()
	o := Options{Address: "127.0.0.1:0", TLS: true, DataDir: dir, Names: []string{"hub.example"},
		now: func() time.Time { return now }}
	first := serve(t, o, hello)
	again := serve(t, o, hello)
	if first.Fingerprint() != again.Fingerprint() || len(first.Fingerprint()) != 95 {
		t.Errorf("fingerprints %q and %q", first.Fingerprint(), again.Fingerprint())
	}
	path := filepath.Join(dir, ownSecret)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v of the key", st.Mode())
	}
	// The file that the guide has users copy.
	b, err := os.ReadFile(filepath.Join(dir, ownCertificate))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "PRIVATE") {
		t.Error("the certificate's file holds the key")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b)
	for _, name := range []string{"", "hub.example", "localhost"} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name},
			DisableKeepAlives: true}}
		if code, _, err := get(client, first.URL()); err != nil || code != 200 {
			t.Errorf("as %q: %d, %v", name, code, err)
		}
	}
	old := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12}}}
	if _, _, err := get(old, first.URL()); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
	now = now.Add(certificateLife - 24*time.Hour)
	if renewed := serve(t, o, hello); renewed.Fingerprint() == first.Fingerprint() {
		t.Error("a certificate that ends tomorrow is not renewed")
	}
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(o); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("a torn certificate: %v", err)
	}
}

// authority makes an authority for clients, and the file of its certificate.
func authority(t *testing.T) (func() tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "clients.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() tls.Certificate {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "grafana"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, own.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
	}, path
}

func TestClientCertificates(t *testing.T) {
	sign, ca := authority(t)
	stranger, _ := authority(t)
	client := func(certs ...tls.Certificate) *http.Client {
		config := &tls.Config{InsecureSkipVerify: true} // the identity of the server is not under test
		if len(certs) > 0 {
			// Send it also when the server did not ask for one of its authority.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
				error) {
				return &certs[0], nil
			}
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	}
	only := serve(t, Options{ClientCA: ca, DataDir: t.TempDir()}, hello)
	either := serve(t, Options{ClientCA: ca, DataDir: t.TempDir(), PasswordFile: cheap(t, secret)}, hello)
	for _, c := range []struct {
		name   string
		server *Server
		client *http.Client
		want   int // 0: no connection
	}{
		{"a client of ours", only, client(sign()), 200},
		{"without", only, client(), 0},
		{"a stranger's", only, client(stranger()), 0},
		{"a client of ours, no password", either, client(sign()), 200},
		{"without both", either, client(), 401},
		{"a stranger's beside a password", either, client(stranger()), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, err := get(c.client, c.server.URL())
			if code != c.want || (err != nil) != (c.want == 0) {
				t.Errorf("status %d, %v, want %d", code, err, c.want)
			}
		})
	}
}

func TestCookieWithTLS(t *testing.T) {
	h := framed(t, Options{TLS: true, PasswordFile: cheap(t, secret)}, hello)
	w := post(h, "/login", map[string][]string{"password": {secret}})
	if c := w.Result().Cookies()[0]; !c.Secure || !c.HttpOnly || c.Name != "__Host-linerate_session" {
		t.Errorf("cookie %v", c)
	}
}

func TestPasswordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	for _, short := range []string{"", "1234567", strings.Repeat("x", 1025), "12345678\xff"} {
		if err := WritePassword(path, short); err == nil {
			t.Errorf("%d bytes were taken", len(short))
		}
	}
	if err := WritePassword(path, secret); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), secret) || !strings.HasPrefix(string(b), "pbkdf2-sha256$600000$") {
		t.Errorf("stored as %q", b)
	}
	h, err := readPassword(path)
	if err != nil {
		t.Fatal(err)
	}
	if !h.is(secret) || h.is(secret+"x") || h.is("") {
		t.Error("the password is not the one that was written")
	}
	for _, bad := range []string{"", "secret", "pbkdf2-sha256$0$AAAAAAAAAAAAAAAA$AAAA",
		"pbkdf2-sha256$99999999999$AAAAAAAAAAAAAAAA$AAAA", "md5$1$AAAAAAAAAAAAAAAA$AAAA",
		strings.Replace(string(b), "600000", "-1", 1), string(b[:len(b)-4])} {
		if _, err := parseHash(bad); err == nil {
			t.Errorf("%q is taken for a hash", bad)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := readPassword(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others can read: %v", err)
	}
	// In a directory of another user, a link there is not followed.
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.Symlink(victim, path+".tmp"); err != nil {
		t.Fatal(err)
	}
	if err := WritePassword(path, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(victim); err == nil {
		t.Error("the password was written through a link")
	}
}

package alert

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// write makes a file and returns its name.
func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWebhookPosts(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	ca := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	h := Webhook{URL: server.URL + "/hook?x=1", CAFile: ca, BearerTokenFile: write(t, "token\n"),
		HeaderFiles: map[string]string{"X-Team": write(t, "network\n")}}
	if err := h.sender()(t.Context(), []byte(`{"version":"4"}`)); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.URL.RequestURI() != "/hook?x=1" || string(body) != `{"version":"4"}` {
		t.Errorf("%s %s %q", got.Method, got.URL, body)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer token",
		"X-Team": "network"} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
		}
	}
	// A certificate without a trusted authority is refused.
	got = nil
	h.CAFile = ""
	if err := h.sender()(t.Context(), nil); err == nil || got != nil {
		t.Errorf("%v, and the message went to %v", err, got)
	}
	h.CAFile = write(t, "no certificate")
	if err := h.sender()(t.Context(), nil); err == nil || errors.Is(err, errPermanent) || got != nil {
		t.Errorf("%v for a file that can be put right while the hub runs, and the message went to %v", err, got)
	}
	h.BearerTokenFile = "/nonexistent/token"
	h.CAFile = ca
	if err := h.sender()(t.Context(), nil); err == nil || got != nil {
		t.Errorf("%v without its token, and the message went to %v", err, got)
	}
}

func TestWebhookAnswers(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	var last string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		last = r.Method + " " + r.URL.Path + " " + string(b)
		switch r.URL.Path {
		case "/503":
			w.WriteHeader(503)
		case "/429":
			w.WriteHeader(429)
		case "/400":
			w.WriteHeader(400)
		case "/moved":
			http.Redirect(w, r, "/here", http.StatusPermanentRedirect)
		case "/away":
			http.Redirect(w, r, other.URL+"/x", http.StatusPermanentRedirect)
		case "/page":
			http.Redirect(w, r, "/login", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
		case "/long":
			_, _ = w.Write(make([]byte, 1<<20))
		}
	}))
	defer server.Close()
	for _, c := range []struct {
		path      string
		want      string // of the error; empty: taken
		permanent bool
		last      string
	}{
		{"/", "", false, "POST / body"},
		{"/long", "", false, "POST /long body"},
		{"/503", "answered 503", false, "POST /503 body"},
		{"/429", "answered 429", false, "POST /429 body"},
		{"/400", "answered 400", true, "POST /400 body"},
		{"/moved", "", false, "POST /here body"},
		{"/away", "messages go only to the configured host", true, "POST /away body"},
		{"/page", "write the final address into url", true, "POST /page body"},
		{"/round", "redirected more than 3 times", true, "POST /round body"},
	} {
		err := Webhook{URL: server.URL + c.path}.sender()(t.Context(), []byte("body"))
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		case errors.Is(err, errPermanent) != c.permanent:
			t.Errorf("%s: %v, permanent: %t", c.path, err, !c.permanent)
		case last != c.last:
			t.Errorf("%s: the last request is %q, want %q", c.path, last, c.last)
		}
	}
	if elsewhere != 0 {
		t.Errorf("%d messages went to another host", elsewhere)
	}
}

// TestWebhookKeepsSecrets checks that the path of an address, which often is the key to it, is in
// no error.
func TestWebhookKeepsSecrets(t *testing.T) {
	free := fmt.Sprint("http://127.0.0.1:", testenv.FreePorts(t, 1))
	err := Webhook{URL: free + "/services/T0/secret"}.sender()(t.Context(), nil)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

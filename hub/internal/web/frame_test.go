package web

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const secret = "correct horse battery"

// cheap writes a password file whose hash is cheap to check.
func cheap(t *testing.T, password string) string {
	t.Helper()
	h, err := newHash(password, 10)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(h.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// framed returns a handler behind the frame of a server with these options.
func framed(t *testing.T, o Options, h http.Handler) http.Handler {
	t.Helper()
	o.Address = "127.0.0.1:0"
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.frame(h)
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

// ask sends a request with headers, given as "Name: value".
func ask(h http.Handler, method, target string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost:7071/", body)
	u, err := url.ParseRequestURI(target)
	if err != nil {
		panic(err)
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
	r.RequestURI = target
	r.Host = "localhost:7071"
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAccess is the table of requests from other parties: which parts of a request decide whether
// the handler sees it.
func TestAccess(t *testing.T) {
	h := framed(t, Options{Names: []string{"Hub.example"}}, hello)
	for _, c := range []struct {
		name    string
		method  string
		target  string
		headers []string
		want    int
	}{
		{"plain", "GET", "/", nil, 200},
		{"its page", "POST", "/api/v1/query", []string{"Sec-Fetch-Site: same-origin", "Origin: http://localhost:7071"},
			200},
		{"a program", "POST", "/api/v1/query", nil, 200},
		{"typed", "GET", "/", []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
			200},
		{"address", "GET", "/", []string{"Host: 127.0.0.1:7071"}, 200},
		{"address 6", "GET", "/", []string{"Host: [::1]:7071"}, 200},
		{"no port", "GET", "/", []string{"Host: localhost"}, 200},
		{"a name of its own", "GET", "/", []string{"Host: hub.EXAMPLE:7071"}, 200},
		{"a form behind a proxy", "POST", "/login", []string{"Host: hub.example", "Sec-Fetch-Site: same-origin",
			"Origin: https://hub.example"}, 200},

		{"rebound", "GET", "/", []string{"Host: evil.example:7071"}, 403},
		{"rebound to an address", "GET", "/", []string{"Host: 192.0.2.1:7071"}, 403},
		{"rebound dot", "GET", "/", []string{"Host: localhost.evil.example"}, 403},
		{"no host", "GET", "/", []string{"Host: "}, 403},
		{"null address", "GET", "/", []string{"Host: 0.0.0.0:7071"}, 403},
		{"user in host", "GET", "/", []string{"Host: localhost@evil.example"}, 403},

		{"cross-site form", "POST", "/", []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, 403},
		{"cross-site navigation of a form", "POST", "/",
			[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
		{"old browser's form", "POST", "/", []string{"Origin: https://evil.example"}, 403},
		{"a form of another port's", "POST", "/", []string{"Host: hub.example", "Origin: https://hub.example:8443"},
			403},
		{"sandboxed form", "POST", "/", []string{"Origin: null"}, 403},
		{"cross-site fetch", "GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors",
			"Sec-Fetch-Dest: empty"}, 403},
		{"cross-site image", "GET", "/api/v1/query?query=up",
			[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}, 403},
		{"cross-site navigation to data", "GET", "/api/v1/query?query=up",
			[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
		{"cross-site navigation to metrics", "GET", "/metrics",
			[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
		{"cross-site frame", "GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
			"Sec-Fetch-Dest: iframe"}, 403},
		{"same site, other port", "GET", "/api/v1/labels", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"old browser's fetch", "GET", "/", []string{"Origin: http://localhost:8080"}, 403},
		{"a link on another site", "GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
			"Sec-Fetch-Dest: document"}, 200},

		{"put", "PUT", "/", nil, 405},
		{"delete", "DELETE", "/api/v1/admin", nil, 405},
		{"trace", "TRACE", "/", nil, 405},
		{"preflight", "OPTIONS", "/api/v1/query",
			[]string{"Origin: https://evil.example", "Access-Control-Request-Method: POST"}, 405},
		{"connect", "CONNECT", "/", nil, 405},

		{"up", "GET", "/../etc/passwd", nil, 400},
		{"up, coded", "GET", "/%2e%2e/%2e%2e/etc/passwd", nil, 400},
		{"up, slash coded", "GET", "/a/..%2f..%2fetc/passwd", nil, 400},
		{"up, backslash", "GET", "/..%5c..%5cetc/passwd", nil, 400},
		{"null byte", "GET", "/a%00.html", nil, 400},
		{"newline", "GET", "/a%0d%0aSet-Cookie:x", nil, 400},
		{"twice coded is a name like any other", "GET", "/%252e%252e/", nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(h, c.method, c.target, nil, c.headers...)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if (w.Body.String() == "hello") != (c.want == 200) {
				t.Errorf("the handler's answer: %q", w.Body)
			}
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("header %s: other sites are let in", name)
				}
			}
			for name, want := range map[string]string{"Content-Security-Policy": policy,
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY"} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("header %s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestRefusalsBelowTheAPIAreJSON(t *testing.T) {
	h := framed(t, Options{}, hello)
	w := ask(h, "GET", "/api/v1/query", nil, "Host: evil.example")
	if got := w.Body.String(); !strings.HasPrefix(got, `{"status":"error","errorType":"forbidden","error":"`) ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answer %q of type %q", got, w.Header().Get("Content-Type"))
	}
}

func TestPanicsAreAnAnswer(t *testing.T) {
	calls := 0
	h := framed(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		if r.URL.Path == "/late" {
			fmt.Fprint(w, "half")
		}
		panic("a secret of the handler")
	}))
	if w := ask(h, "GET", "/", nil); w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	// A half answer must not look whole: the server cuts the connection.
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("an answer that had begun was ended as if it were whole")
			}
		}()
		ask(h, "GET", "/late", nil)
	}()
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

func TestPlacesAreBounded(t *testing.T) {
	inside, leave := make(chan bool), make(chan bool)
	h := framed(t, Options{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- true
		<-leave
	}))
	ended := make(chan bool)
	for range maxAtOnce {
		go func() {
			ask(h, "GET", "/", nil)
			ended <- true
		}()
		<-inside
	}
	if w := ask(h, "GET", "/", nil); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("one too many: status %d, retry after %q", w.Code, w.Header().Get("Retry-After"))
	}
	close(leave)
	for range maxAtOnce {
		<-ended
	}
	go func() { <-inside }()
	if w := ask(h, "GET", "/", nil); w.Code != 200 {
		t.Errorf("after they left: status %d", w.Code)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	h := framed(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	}))
	w := ask(h, "POST", "/", strings.NewReader(strings.Repeat("x", 10<<20)))
	if got, want := w.Body.String(), "body is larger than 1048576 bytes\n"; w.Code != 413 || got != want {
		t.Errorf("%d %q, want %q", w.Code, got, want)
	}
	w = ask(h, "POST", "/", strings.NewReader(strings.Repeat("x", maxBody)))
	if got, want := w.Body.String(), fmt.Sprint(maxBody, nil); got != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

func post(h http.Handler, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	return ask(h, "POST", path, strings.NewReader(form.Encode()),
		append(headers, "Content-Type: application/x-www-form-urlencoded")...)
}

func TestPassword(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	h := framed(t, Options{PasswordFile: cheap(t, secret), Open: []string{"/healthz"},
		now: func() time.Time { return now }}, hello)
	browser := []string{"Accept: text/html,*/*", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none",
		"Sec-Fetch-Dest: document"}

	w := ask(h, "GET", "/interfaces?x=1&y=2", nil, browser...)
	if got := w.Header().Get("Location"); w.Code != 303 || got != "/login?next=%2Finterfaces%3Fx%3D1%26y%3D2" {
		t.Errorf("a browser gets %d to %q", w.Code, got)
	}
	if w := ask(h, "GET", "/api/v1/query", nil, "Sec-Fetch-Mode: cors", "Sec-Fetch-Site: same-origin"); w.Code != 401 ||
		w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("a page's fetch gets %d, asked for %q", w.Code, w.Header().Get("WWW-Authenticate"))
	}
	if w := ask(h, "GET", "/api/v1/query", nil); w.Code != 401 ||
		!strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("a program gets %d, asked for %q", w.Code, w.Header().Get("WWW-Authenticate"))
	}
	if w := ask(h, "GET", "/healthz", nil); w.Code != 200 {
		t.Errorf("what is open: %d", w.Code)
	}
	form := ask(h, "GET", `/login?next=/"><script>`, nil)
	if body := form.Body.String(); form.Code != 200 || strings.Count(body, "<script") != 1 ||
		!strings.Contains(body, `action="/login"`) {
		t.Errorf("form %d: %s", form.Code, body)
	}
	if w := ask(h, "GET", "/login.js", nil); w.Code != 200 ||
		w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("script: %d %v", w.Code, w.Header())
	}
	if w := ask(h, "GET", "/login.css", nil); w.Code != 200 ||
		w.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("style %d", w.Code)
	}
	if w := post(h, "/login", url.Values{"password": {"wrong"}}); w.Code != 401 || len(w.Result().Cookies()) != 0 {
		t.Errorf("wrong password: %d with %v", w.Code, w.Result().Cookies())
	}
	if w := post(h, "/login", url.Values{"password": {secret}}, "Origin: https://evil.example"); w.Code != 403 {
		t.Errorf("log in from another site: %d", w.Code)
	}

	w = post(h, "/login", url.Values{"password": {secret}, "next": {"/interfaces"}})
	if w.Code != 303 || w.Header().Get("Location") != "/interfaces" || len(w.Result().Cookies()) != 2 {
		t.Fatalf("log in: %d to %q with %v", w.Code, w.Header().Get("Location"), w.Result().Cookies())
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure {
		t.Errorf("cookie %v", c)
	}
	session := "Cookie: " + c.Name + "=" + c.Value
	if w := ask(h, "GET", "/api/v1/query", nil, session); w.Code != 200 {
		t.Errorf("with a session: %d", w.Code)
	}
	for _, wrong := range []string{"", c.Value[1:], strings.ToUpper(c.Value), c.Value + "x", strings.Repeat("A", 43)} {
		if w := ask(h, "GET", "/api/v1/query", nil, "Cookie: "+c.Name+"="+wrong); w.Code != 401 {
			t.Errorf("with the cookie %q: %d", wrong, w.Code)
		}
	}
	now = now.Add(sessionLife - time.Second)
	if w := ask(h, "GET", "/", nil, session); w.Code != 200 {
		t.Errorf("a session in use ended: %d", w.Code)
	}
	// A browser drops a cookie when its Max-Age is over, so a session in use gives it again, but not
	// with each answer.
	now = now.Add(time.Minute)
	if w := ask(h, "GET", "/", nil, session); len(w.Result().Cookies()) != 0 {
		t.Errorf("cookies a minute later: %v", w.Result().Cookies())
	}
	now = now.Add(renewAfter)
	again := ask(h, "GET", "/api/v1/query", nil, session).Result().Cookies()
	if len(again) != 2 || again[0].Name != c.Name || again[0].Value != c.Value || again[0].MaxAge != c.MaxAge ||
		!again[0].HttpOnly || again[1].Name != "linerate_login" || again[1].MaxAge != c.MaxAge {
		t.Errorf("cookies of a session in use: %v", again)
	}
	now = now.Add(sessionLife + time.Second)
	if w := ask(h, "GET", "/", nil, session); w.Code != 401 {
		t.Errorf("a session outlived its time: %d", w.Code)
	}

	w = post(h, "/login", url.Values{"password": {secret}})
	session = "Cookie: " + w.Result().Cookies()[0].Name + "=" + w.Result().Cookies()[0].Value
	if w := ask(h, "GET", "/logout", nil, session); w.Code != 405 {
		t.Errorf("log out by a link: %d", w.Code)
	}
	// The page shows its button by a cookie that its script can read, and that is of no use otherwise.
	if marks := w.Result().Cookies(); len(marks) != 2 || marks[1].Name != "linerate_login" || marks[1].HttpOnly ||
		marks[1].MaxAge <= 0 || !marks[0].HttpOnly {
		t.Errorf("cookies of a login: %v", marks)
	}
	if w := ask(h, "GET", "/", nil, "Cookie: linerate_login=1"); w.Code != 401 {
		t.Errorf("the mark opens the page: %d", w.Code)
	}
	if w := post(h, "/logout", nil, session); w.Code != 303 || len(w.Result().Cookies()) != 2 ||
		w.Result().Cookies()[0].MaxAge >= 0 || w.Result().Cookies()[1].MaxAge >= 0 {
		t.Errorf("log out: %d, %v", w.Code, w.Result().Cookies())
	}
	if w := ask(h, "GET", "/", nil, session); w.Code != 401 {
		t.Errorf("after logging out: %d", w.Code)
	}
}

func TestNextStaysHere(t *testing.T) {
	h := framed(t, Options{PasswordFile: cheap(t, secret)}, hello)
	for next, want := range map[string]string{"": "/", "/a?b=c": "/a?b=c", "//evil.example": "/",
		"https://evil.example": "/", `/\evil.example`: "/", "/\tevil": "/", "javascript:alert(1)": "/"} {
		if got := post(h, "/login", url.Values{"password": {secret}, "next": {next}}).Header().Get(
			"Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

func basic(password string) string {
	r := httptest.NewRequest("GET", "/", nil)
	r.SetBasicAuth("grafana", password)
	return "Authorization: " + r.Header.Get("Authorization")
}

func TestGuessersWait(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	h := framed(t, Options{PasswordFile: cheap(t, secret), now: func() time.Time { return now }}, hello)
	for i := range freeFailures + 1 {
		if w := ask(h, "GET", "/api/x", nil, basic(fmt.Sprint("guess", i))); w.Code != 401 {
			t.Fatalf("guess %d: %d", i, w.Code)
		}
	}
	wait := time.Second
	for i := range 10 {
		w := ask(h, "GET", "/api/x", nil, basic(secret))
		if w.Code != 429 || w.Header().Get("Retry-After") != fmt.Sprint(int(wait.Seconds())) {
			t.Fatalf("round %d: %d, retry after %q, want %v; the right password is not looked at either", i, w.Code,
				w.Header().Get("Retry-After"), wait)
		}
		if w := post(h, "/login", url.Values{"password": {secret}}); w.Code != 429 {
			t.Fatalf("round %d by the form: %d", i, w.Code)
		}
		now = now.Add(wait)
		if w := ask(h, "GET", "/api/x", nil, basic("wrong again")); w.Code != 401 {
			t.Fatalf("round %d after the wait: %d", i, w.Code)
		}
		wait = min(2*wait, longestWait)
	}
	now = now.Add(longestWait)
	if w := ask(h, "GET", "/api/x", nil, basic(secret)); w.Code != 200 {
		t.Errorf("the right password after the wait: %d", w.Code)
	}
	// Other clients keep guessing from the same address: the right password still passes.
	for range 2 * freeFailures {
		ask(h, "GET", "/api/x", nil, basic("guess"))
	}
	if w := ask(h, "GET", "/api/x", nil, basic(secret)); w.Code != 200 {
		t.Errorf("the known password while others guess: %d", w.Code)
	}
	if w := ask(h, "GET", "/api/x", nil, basic("guess")); w.Code != 429 {
		t.Errorf("the guesser: %d", w.Code)
	}
}

func TestGateIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	h, _ := newHash(secret, 1)
	g := newGate(h, func() time.Time { now = now.Add(time.Millisecond); return now })
	for i := range 2 * maxAddresses {
		r := &http.Request{RemoteAddr: fmt.Sprintf("[2001:db8:%x::%x]:1", i, i)}
		if v, _ := g.try(t.Context(), origin(r), "guess"); v != wrong {
			t.Fatalf("address %d: %v", i, v)
		}
	}
	if len(g.failed) > maxAddresses {
		t.Errorf("%d addresses are remembered", len(g.failed))
	}
	for range 2 * maxSessions {
		g.begin()
	}
	if len(g.sessions) > maxSessions {
		t.Errorf("%d sessions are remembered", len(g.sessions))
	}
	a, b := &http.Request{RemoteAddr: "[2001:db8::1]:1"}, &http.Request{RemoteAddr: "[2001:db8:0:9::2]:9"}
	if origin(a) != origin(b) {
		t.Error("the /48 of one site counts as many hosts")
	}
}

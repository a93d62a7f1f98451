package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed login.html login.css login.js
var files embed.FS

// policy allows what this server sends and nothing else: no inline script, no inline style, no
// other origin, no frame.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// frame checks requests before a handler gets them.
type frame struct {
	*Server
	next   http.Handler
	places chan struct{}
	bodies chan struct{} // held while a body arrives
	cross  *http.CrossOriginProtection
	names  []string
}

func (s *Server) frame(h http.Handler) http.Handler {
	f := &frame{Server: s, next: h, places: make(chan struct{}, maxAtOnce),
		bodies: make(chan struct{}, maxBodies), cross: http.NewCrossOriginProtection()}
	f.names = append(f.names, "localhost")
	for _, n := range s.options.Names {
		f.names = append(f.names, strings.ToLower(strings.TrimSuffix(n, ".")))
	}
	if !s.loopback {
		if h, err := os.Hostname(); err == nil {
			f.names = append(f.names, strings.ToLower(h))
		}
	}
	return f
}

func (f *frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &answer{ResponseWriter: w, control: http.NewResponseController(w), latest: time.Now().Add(writeTimeout)}
	defer f.rescue(out, r)
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	// under "no-referrer" browsers send the login form with "Origin: null" (Fetch, 3.1), as another
	// site's form
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store") // a handler that serves static files may override it
	head.Set("Vary", "Cookie, Authorization")

	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		head.Set("Allow", "GET, HEAD, POST")
		refuse(out, r, http.StatusMethodNotAllowed, "method is not allowed here")
		return
	}
	if !f.called(r.Host) {
		refuse(out, r, http.StatusForbidden,
			fmt.Sprintf("this server does not answer to the name %.100q; start it with --name to allow "+
				"the name", r.Host))
		return
	}
	if why := f.foreign(r); why != "" {
		refuse(out, r, http.StatusForbidden, why)
		return
	}
	if crooked(r) {
		refuse(out, r, http.StatusBadRequest, "path is not allowed here")
		return
	}
	if !f.admitted(out, r) {
		return
	}
	// A request takes its place, and keeps its connection, only when all of it is here: a client
	// that sends a byte a second would hold both for as long as it likes.
	if !f.arrived(out, r) {
		return
	}
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	default:
		tooMany(out, r)
		return
	}
	defer answering(r.Context())()
	f.next.ServeHTTP(out, r)
}

// arrived reads the body of a request and reports whether all of it is here. Otherwise it has
// answered the request.
func (f *frame) arrived(w *answer, r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	select {
	case f.bodies <- struct{}{}:
		defer func() { <-f.bodies }()
	default:
		tooMany(w, r)
		return false
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("body is larger than %d bytes", maxBody))
		return false
	case err != nil:
		refuse(w, r, http.StatusRequestTimeout, "body did not arrive")
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return true
}

func tooMany(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	refuse(w, r, http.StatusServiceUnavailable, "too many requests at once; try again in a second")
}

// answer remembers whether it has begun, and ends with a client that takes nothing of it.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	latest  time.Time // when all of it must have left
	begun   bool
}

func (a *answer) WriteHeader(code int) {
	a.begun = true
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	// Recorders of tests have no deadline.
	if next := time.Now().Add(stallTimeout); next.Before(a.latest) {
		_ = a.control.SetWriteDeadline(next)
	} else {
		_ = a.control.SetWriteDeadline(a.latest)
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap makes the writer work with http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// rescue turns a panic into an answer. It cuts off an answer that has begun, so that no client
// takes a part for the whole.
func (f *frame) rescue(w *answer, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		f.options.Log.Error("panic while answering", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(p),
			"stack", string(debug.Stack()))
	}
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	refuse(w, r, http.StatusInternalServerError, "internal error; the log of the server has it")
}

// called reports whether a request names this server by one of its names. A hostile page whose DNS
// name suddenly resolves to this server still sends its own name. DNS cannot redirect an IP
// address, so off the loopback each address is good.
func (f *frame) called(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if ip, err := netip.ParseAddr(name); err == nil {
		return !f.loopback || ip.Unmap().IsLoopback() || slices.Contains(f.names, name)
	}
	return slices.Contains(f.names, strings.ToLower(strings.TrimSuffix(name, ".")))
}

// foreign returns why the frame refuses a request that another site made a browser send, or "". A
// user may follow a link to a page. Nothing under /api/ or /metrics is for another site's pages:
// they could not read the answer, and it would cost the hub.
func (f *frame) foreign(r *http.Request) string {
	const why = "this server refuses requests from other sites"
	if f.cross.Check(r) != nil {
		return why
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		data := strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == "/metrics"
		if data || r.Method == http.MethodPost || r.Header.Get("Sec-Fetch-Mode") != "navigate" ||
			r.Header.Get("Sec-Fetch-Dest") != "document" {
			return why
		}
	}
	if from := r.Header.Get("Origin"); from != "" {
		// Without TLS, a proxy in front may have it: its pages are the hub's, and their origin is
		// https.
		if !strings.EqualFold(from, "https://"+r.Host) && (f.tls != nil || !strings.EqualFold(from, "http://"+r.Host)) {
			return why
		}
	}
	return ""
}

// crooked reports whether a path leads up, or whether two programs could read it differently.
func crooked(r *http.Request) bool {
	if r.URL.Path == "" || r.URL.Path[0] != '/' || strings.ContainsAny(r.URL.Path, "\\\x00\r\n") {
		return true
	}
	return slices.ContainsFunc(strings.Split(r.URL.Path, "/"),
		func(part string) bool { return part == ".." || part == "." })
}

// admitted reports whether the request may pass. Otherwise it has answered the request.
func (f *frame) admitted(w http.ResponseWriter, r *http.Request) bool {
	if f.gate == nil {
		return true // the loopback address, or the handshake required a certificate
	}
	switch r.URL.Path {
	case "/login":
		f.login(w, r)
		return false
	case "/logout":
		f.logout(w, r)
		return false
	case "/login.css", "/login.js":
		kind := "text/css"
		if r.URL.Path == "/login.js" {
			kind = "text/javascript"
		}
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		b, _ := files.ReadFile(r.URL.Path[1:])
		_, _ = w.Write(b)
		return false
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 || slices.Contains(f.options.Open, r.URL.Path) {
		return true
	}
	if c, err := r.Cookie(f.cookie()); err == nil {
		ok, renew := f.gate.has(c.Value)
		if renew {
			f.remember(w, c.Value)
		}
		if ok {
			return true
		}
	}
	if _, password, ok := r.BasicAuth(); ok {
		verdict, wait := f.gate.try(r.Context(), origin(r), password)
		switch verdict {
		case right:
			return true
		case later:
			retry(w, wait)
			refuse(w, r, http.StatusTooManyRequests, "too many wrong passwords; wait before the next")
			return false
		}
	}
	// Only browsers send Sec-Fetch headers. A browser's own password box would store the password,
	// and open over the page.
	browser := r.Header.Get("Sec-Fetch-Mode") != "" || strings.Contains(r.Header.Get("Accept"), "text/html")
	if browser && r.Method != http.MethodPost && strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return false
	}
	if !browser {
		w.Header().Set("WWW-Authenticate", `Basic realm="linerate-hub", charset="UTF-8"`)
	}
	refuse(w, r, http.StatusUnauthorized, "a password is required")
	return false
}

// cookie returns the name of the session cookie. With TLS its prefix makes browsers enforce its
// attributes.
func (f *frame) cookie() string {
	if f.tls != nil {
		return "__Host-linerate_session"
	}
	return "linerate_session"
}

// remember makes the browser keep a session for as long as the server keeps it from now on.
func (f *frame) remember(w http.ResponseWriter, token string) {
	f.setCookie(w, token, int(sessionLife/time.Second))
	f.mark(w, int(sessionLife/time.Second))
}

func (f *frame) setCookie(w http.ResponseWriter, token string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: f.cookie(), Value: token, Path: "/", MaxAge: seconds, HttpOnly: true,
		Secure: f.tls != nil, SameSite: http.SameSiteStrictMode})
}

// mark lets the page's script see that there is a session to end: it cannot see the cookie of the
// session itself. It is no secret, and the server does not read it.
func (f *frame) mark(w http.ResponseWriter, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: "linerate_login", Value: "1", Path: "/", MaxAge: seconds,
		Secure: f.tls != nil, SameSite: http.SameSiteStrictMode})
}

// login shows the form, or handles it.
func (f *frame) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		f.form(w, r, http.StatusOK, within(r.URL.Query().Get("next")), "")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		refuse(w, r, http.StatusBadRequest, "form cannot be read")
		return
	}
	next := within(r.PostForm.Get("next"))
	verdict, wait := f.gate.try(r.Context(), origin(r), r.PostForm.Get("password"))
	switch verdict {
	case right:
		f.remember(w, f.gate.begin())
		http.Redirect(w, r, next, http.StatusSeeOther)
	case wrong:
		f.form(w, r, http.StatusUnauthorized, next, "Wrong password.")
	default:
		retry(w, wait)
		f.form(w, r, http.StatusTooManyRequests, next, "Too many wrong passwords. Wait a minute, then try again.")
	}
}

func (f *frame) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		refuse(w, r, http.StatusMethodNotAllowed, "method is not allowed here")
		return
	}
	if c, err := r.Cookie(f.cookie()); err == nil {
		f.gate.end(c.Value)
	}
	f.setCookie(w, "", -1)
	f.mark(w, -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (f *frame) form(w http.ResponseWriter, r *http.Request, code int, next, message string) {
	b, _ := files.ReadFile("login.html")
	page := strings.NewReplacer("{next}", html.EscapeString(next), "{message}",
		html.EscapeString(message)).Replace(string(b))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(page))
	}
}

// within returns a path on this server, never one that leads to another host.
func within(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") ||
		len(next) > 4096 {
		return "/"
	}
	return next
}

func retry(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}

// refuse answers with JSON in Prometheus's form below /api/, and with text elsewhere.
func refuse(w http.ResponseWriter, r *http.Request, code int, why string) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		if r.Method != http.MethodHead {
			fmt.Fprintln(w, why)
		}
		return
	}
	kind := map[int]string{http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
		http.StatusServiceUnavailable: "unavailable",
		http.StatusTooManyRequests:    "too_many_requests", http.StatusInternalServerError: "internal"}[code]
	if kind == "" {
		kind = "bad_data"
	}
	b, _ := json.Marshal(struct {
		Status string `json:"status"`
		Type   string `json:"errorType"`
		Error  string `json:"error"`
	}{"error", kind, why})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b)
	}
}

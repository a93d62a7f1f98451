package remote_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/linerate/linerate/hub/internal/record/remote"
	"github.com/linerate/linerate/internal/host/sample"
)

var received = &sample.Metric{Name: "linerate_interface_receive_bytes_total", Labels: []string{"interface"}}

var noon = time.Unix(1_700_006_400, 0)

// receiver answers with the given answers, and keeps what it took.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	answers []func(http.ResponseWriter) // of the next requests; none: 204
	got     []string                    // "interface time value"
	auth    []string
	news    chan struct{}
}

func newReceiver(t *testing.T, start func(http.Handler) *httptest.Server,
	answers ...func(http.ResponseWriter)) *receiver {
	t.Helper()
	r := &receiver{answers: answers, news: make(chan struct{}, 1000)}
	r.Server = start(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		defer func() { r.news <- struct{}{} }()
		r.auth = append(r.auth, req.Header.Get("Authorization"))
		if len(r.answers) > 0 {
			answer := r.answers[0]
			r.answers = r.answers[1:]
			answer(w)
			return
		}
		got, err := unpack(body)
		if err != nil || req.Method != http.MethodPost || req.Header.Get("Content-Encoding") != "snappy" ||
			req.Header.Get("Content-Type") != "application/x-protobuf" ||
			req.Header.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" {
			http.Error(w, fmt.Sprint("bad request: ", err), http.StatusBadRequest)
			return
		}
		r.got = append(r.got, got...)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

// await waits for requests until a condition holds.
func (r *receiver) await(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute) // only against a test that hangs
	for !ok() {
		select {
		case <-r.news:
		case <-time.After(10 * time.Millisecond): // the writer records an answer after the receiver has sent it
		case <-deadline:
			t.Fatal("the condition never held")
		}
	}
}

// unpack parses a request independently of the code that wrote it.
func unpack(body []byte) ([]string, error) {
	raw, err := compression.Decode(compression.Snappy, body, compression.NewSyncDecodeBuffer())
	if err != nil {
		return nil, err
	}
	var out []string
	err = fields(raw, func(_ uint64, series []byte, _ uint64) error {
		labels := map[string]string{}
		var samples []string
		err := fields(series, func(field uint64, b []byte, _ uint64) error {
			var name, value string
			var ms, bits uint64
			err := fields(b, func(part uint64, text []byte, n uint64) error {
				switch {
				case field == 1 && part == 1:
					name = string(text)
				case field == 1:
					value = string(text)
				case part == 1:
					bits = n
				default:
					ms = n
				}
				return nil
			})
			if field == 1 {
				labels[name] = value
			} else {
				samples = append(samples, fmt.Sprintf("%d %g", int64(ms)-noon.UnixMilli(), math.Float64frombits(bits)))
			}
			return err
		})
		if labels["__name__"] != received.Name || labels["host"] != "near" {
			return fmt.Errorf("labels %v", labels)
		}
		for _, s := range samples {
			out = append(out, labels["interface"]+" "+s)
		}
		return err
	})
	return out, err
}

// fields calls a func with each field of a message: its bytes, or its number.
func fields(b []byte, each func(field uint64, bytes []byte, number uint64) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		b = b[n:]
		var err error
		switch key & 7 {
		case 0:
			v, n := binary.Uvarint(b)
			b = b[n:]
			err = each(key>>3, nil, v)
		case 1:
			err = each(key>>3, nil, binary.LittleEndian.Uint64(b))
			b = b[8:]
		case 2:
			l, n := binary.Uvarint(b)
			err = each(key>>3, b[n:n+int(l)], 0)
			b = b[n+int(l):]
		default:
			err = fmt.Errorf("wire type %d", key&7)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func start(t *testing.T, o remote.Options) *remote.Writer {
	t.Helper()
	o.Host = "near"
	if o.Gather == 0 {
		o.Gather = time.Second // a request for each reading
	}
	o.Backoff, o.MaxBackoff = time.Millisecond, cmp.Or(o.MaxBackoff, 400*time.Millisecond)
	w, err := remote.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.Close(ctx)
	})
	return w
}

var eth0, eth1 = &sample.Series{Metric: received, Values: []string{"eth0"}},
	&sample.Series{Metric: received, Values: []string{"eth1"}}

func reading(second int) *sample.Reading {
	return &sample.Reading{Time: noon.Add(time.Duration(second) * time.Second),
		Points: []sample.Point{{Series: eth0, Value: float64(second)}, {Series: eth1, Value: 0.5}}}
}

func want(seconds ...int) (out []string) {
	for _, s := range seconds {
		out = append(out, fmt.Sprintf("eth0 %d %d", s*1000, s), fmt.Sprintf("eth1 %d 0.5", s*1000))
	}
	return out
}

func fail(code int, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		http.Error(w, "not now", code)
	}
}

func TestTriesAgain(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, httptest.NewServer, fail(503), fail(500), fail(429, "Retry-After", "1"))
	w := start(t, remote.Options{URL: r.URL + "/api/v1/write"})
	began := time.Now()
	for i := range 3 {
		w.Append(reading(i))
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("everything was sent after %v: the receiver asked for a second", took)
	}
	if diff := gocmp.Diff(want(0, 1, 2), r.taken()); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	s := w.Status()
	if s.SentSamples != 6 || s.Failures != 3 || s.QueuedSamples != 0 || s.QueuedBytes != 0 || !s.Since.IsZero() ||
		!s.NewestDelivered.Equal(noon.Add(2*time.Second)) {
		t.Errorf("status %+v", s)
	}
}

func TestGathers(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, httptest.NewServer)
	w := start(t, remote.Options{URL: r.URL, Gather: 3 * time.Second})
	for i := range 3 {
		w.Append(reading(i))
	}
	ended := reading(3)
	ended.Points, ended.Ended = ended.Points[:1], []*sample.Series{eth1}
	w.Append(ended)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := []string{"eth0 0 0", "eth0 1000 1", "eth0 2000 2", "eth1 0 0.5", "eth1 1000 0.5", "eth1 2000 0.5",
		"eth0 3000 3", "eth1 3000 NaN"}
	if diff := gocmp.Diff(all, r.taken()); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if n := len(r.auth); n != 2 {
		t.Errorf("%d requests for four seconds gathered by three", n)
	}
}

// TestReceiverAway fills the queue: the writer keeps the newest, and counts the rest.
func TestReceiverAway(t *testing.T) {
	t.Parallel()
	away := make([]func(http.ResponseWriter), 20)
	for i := range away {
		away[i] = fail(503)
	}
	appended := make(chan struct{})
	away[0] = func(w http.ResponseWriter) { <-appended; fail(503)(w) }
	r := newReceiver(t, httptest.NewServer, away...)
	w := start(t, remote.Options{URL: r.URL, QueueBytes: 1000, MaxBackoff: 4 * time.Millisecond})
	for i := range 100 {
		w.Append(reading(i))
	}
	close(appended)
	r.await(t, func() bool { return w.Status().SentSamples > 0 && w.Status().QueuedSamples == 0 })
	s := w.Status()
	if s.DroppedSamples == 0 || s.SentSamples+s.DroppedSamples != 200 {
		t.Errorf("%d sent and %d dropped of 200", s.SentSamples, s.DroppedSamples)
	}
	got := r.taken()
	if len(got) != int(s.SentSamples) || got[len(got)-1] != "eth1 99000 0.5" {
		t.Errorf("%d samples taken, the last is %v", len(got), got[len(got)-1:])
	}
	for _, p := range w.Own() {
		if p.Series.Metric.Name == "linerate_hub_remote_dropped_samples_total" && p.Value != float64(s.DroppedSamples) {
			t.Errorf("metric of dropped samples is %v, want %d", p.Value, s.DroppedSamples)
		}
	}
}

// TestRefused drops what the receiver will never take, and continues.
func TestRefused(t *testing.T) {
	t.Parallel()
	elsewhere := newReceiver(t, httptest.NewServer)
	r := newReceiver(t, httptest.NewServer, fail(400), fail(307, "Location", elsewhere.URL))
	w := start(t, remote.Options{URL: r.URL})
	for i := range 3 {
		w.Append(reading(i))
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want(2), r.taken()); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if s := w.Status(); s.RefusedSamples != 4 || s.SentSamples != 2 {
		t.Errorf("status %+v", s)
	}
	if len(elsewhere.auth) > 0 {
		t.Error("a redirection was followed")
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := newReceiver(t, httptest.NewTLSServer)
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})))
	token := write("token", "first\n")
	w := start(t, remote.Options{URL: r.URL, CAFile: ca, BearerTokenFile: token})
	w.Append(reading(0))
	r.await(t, func() bool { return w.Status().SentSamples == 2 })
	write("token", "second\n")
	w.Append(reading(1))
	r.await(t, func() bool { return w.Status().SentSamples == 4 })
	b := start(t, remote.Options{URL: r.URL, CAFile: ca, Username: "hub", PasswordFile: write("password", "secret\n")})
	b.Append(reading(2))
	r.await(t, func() bool { return b.Status().SentSamples == 2 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := gocmp.Diff([]string{"Bearer first", "Bearer second", "Basic aHViOnNlY3JldA=="}, r.auth); diff != "" {
		t.Errorf("credentials that the receiver got (-want +got):\n%s", diff)
	}
}

// TestUntrusted sends nothing to a receiver without a trusted certificate.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, httptest.NewTLSServer)
	w := start(t, remote.Options{URL: r.URL})
	w.Append(reading(0))
	r.await(t, func() bool { return w.Status().Failures > 1 })
	if s := w.Status(); !strings.Contains(s.LastError, "certificate") || s.QueuedSamples != 2 {
		t.Errorf("status %+v, want an error of the certificate and the samples kept", s)
	}
	if len(r.auth) > 0 {
		t.Error("a receiver without a trusted certificate got samples")
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]remote.Options{
		"no scheme":            {URL: "10.0.0.1:9090/api/v1/write"},
		"file":                 {URL: "file:///etc/passwd"},
		"password in the URL":  {URL: "http://a:b@host/write"},
		"user and token":       {URL: "http://host/write", Username: "a", PasswordFile: "p", BearerTokenFile: "t"},
		"user without a file":  {URL: "http://host/write", Username: "a"},
		"key without its cert": {URL: "http://host/write", KeyFile: "k"},
		"no such certificate":  {URL: "http://host/write", CAFile: "/nonexistent"},
	} {
		if w, err := remote.New(o); err == nil {
			_ = w.Close(t.Context())
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "a:b") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "1.5": 0,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := remote.RetryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

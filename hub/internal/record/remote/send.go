package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/credential"
)

// refusedError reports that the receiver will never take a request.
type refusedError struct{ status, text string }

func (e *refusedError) Error() string { return "the receiver answers " + e.status + ": " + e.text }

// laterError reports that the receiver may take it later.
type laterError struct {
	status, text string
	after        time.Duration // the delay that it asked for; 0: none
}

func (e *laterError) Error() string { return "the receiver answers " + e.status + ": " + e.text }

func newClient(o Options) (*http.Client, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          1,
		IdleConnTimeout:       2 * time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: o.Timeout,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if o.CAFile != "" {
		pool, err := credential.Authorities(o.CAFile)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig.RootCAs = pool
	}
	if o.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, err
		}
		// Read for each connection, so that it can be renewed.
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
			return &c, err
		}
	}
	return &http.Client{
		Transport: t,
		Timeout:   o.Timeout,
		// Samples and passwords go only to the configured address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// send sends one request. A refusedError means that a retry is useless.
func (w *Writer) send(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.o.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	req.Header.Set("User-Agent", "linerate-hub")
	if err := w.authorise(req); err != nil {
		return err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	text, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(said), "?")), "\n")
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return nil
	case code/100 == 5, code == http.StatusTooManyRequests:
		return &laterError{resp.Status, text, retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	}
	return &refusedError{resp.Status, text}
}

func (w *Writer) authorise(req *http.Request) error {
	file := w.o.PasswordFile + w.o.BearerTokenFile // one of them is empty
	if file == "" {
		return nil
	}
	secret, err := credential.Secret(file)
	if err != nil {
		return err
	}
	if w.o.BearerTokenFile != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
		return nil
	}
	req.SetBasicAuth(w.o.Username, secret)
	return nil
}

// retryAfter parses the header: seconds or a date; otherwise 0.
func retryAfter(header string, now time.Time) time.Duration {
	if s, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// delay returns how long to wait after a failure: what the receiver asked for, or a random time
// around the given one, so that many hosts do not return together.
func (w *Writer) delay(wait time.Duration, err error) time.Duration {
	wait = wait/2 + rand.N(wait)
	var later *laterError
	if errors.As(err, &later) {
		wait = max(wait, min(later.after, 10*w.o.MaxBackoff))
	}
	return wait
}

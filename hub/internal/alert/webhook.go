package alert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/credential"
)

const (
	mostRedirects = 3
	mostOfAnswer  = 4 << 10 // bytes read of an answer
)

// sender returns a func that posts messages to a receiver. It reads files for every message, so
// that a token can change without a restart.
func (h Webhook) sender() func(ctx context.Context, body []byte) error {
	return func(ctx context.Context, body []byte) error {
		transport := &http.Transport{
			// messages are minutes apart
			Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
			MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		}
		if h.CAFile != "" {
			pool, err := credential.Authorities(h.CAFile)
			if err != nil {
				return err
			}
			transport.TLSClientConfig.RootCAs = pool
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
		if err != nil {
			return quiet(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("User-Agent", "linerate")
		if h.BearerTokenFile != "" {
			token, err := credential.Secret(h.BearerTokenFile)
			if err != nil {
				return err
			}
			request.Header.Set("Authorization", "Bearer "+token)
		}
		for name, file := range h.HeaderFiles {
			value, err := credential.Secret(file)
			if err != nil {
				return err
			}
			request.Header.Set(name, value)
		}
		client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
		answer, err := client.Do(request)
		if err != nil {
			return quiet(err)
		}
		defer answer.Body.Close()
		_, _ = io.CopyN(io.Discard, answer.Body, mostOfAnswer) // only the status counts
		switch code := answer.StatusCode; {
		case code/100 == 2:
			return nil
		case code/100 == 5 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
			return fmt.Errorf("answered %s", answer.Status)
		default:
			return fmt.Errorf("answered %s: %w", answer.Status, errPermanent)
		}
	}
}

// checkRedirect allows redirects within the receiver's host only, because of the message and its
// credentials.
func checkRedirect(next *http.Request, before []*http.Request) error {
	first := before[0]
	switch {
	case len(before) > mostRedirects:
		return fmt.Errorf("%w: redirected more than %d times", errPermanent, mostRedirects)
	case next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme:
		return fmt.Errorf("%w: redirected to %s://%s, but messages go only to the configured host",
			errPermanent, next.URL.Scheme, next.URL.Host)
	case next.Method != http.MethodPost:
		return fmt.Errorf("%w: redirected as GET: write the final address into url", errPermanent)
	}
	return nil
}

// quiet returns an error without the address, since its path may be a secret.
func quiet(err error) error {
	for unwrapped := errors.Unwrap(err); unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
		if !strings.Contains(unwrapped.Error(), "://") || errors.Is(unwrapped, errPermanent) {
			return unwrapped
		}
	}
	return errors.New("the message could not be sent")
}

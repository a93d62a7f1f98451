package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/linerate/linerate/hub/internal/record/remote"
)

// RemoteWrite is a store that receives the hub's samples by Prometheus's remote write.
type RemoteWrite struct {
	URL             string `yaml:"url"`
	CAFile          string `yaml:"ca_file"`
	CertFile        string `yaml:"cert_file"`
	KeyFile         string `yaml:"key_file"`
	Username        string `yaml:"username"`
	PasswordFile    string `yaml:"password_file"`
	BearerTokenFile string `yaml:"bearer_token_file"`
}

// Validate returns the first mistake in the settings.
func (w RemoteWrite) Validate() error {
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("remote_write %q: write url: https://HOST/api/v1/write, or the address of your store",
			w.URL)
	case u.User != nil:
		return errors.New("remote_write: logs would show a password in a url: write username and password_file")
	case (w.Username == "") != (w.PasswordFile == ""):
		return fmt.Errorf("remote_write %s: username and password_file: give both or none", w.URL)
	case w.Username != "" && w.BearerTokenFile != "":
		return fmt.Errorf("remote_write %s: give username or bearer_token_file, not both", w.URL)
	}
	return nil
}

func (w RemoteWrite) options(host string, log *slog.Logger) remote.Options {
	return remote.Options{
		URL: w.URL, Host: host, CAFile: w.CAFile, CertFile: w.CertFile, KeyFile: w.KeyFile,
		Username: w.Username, PasswordFile: w.PasswordFile, BearerTokenFile: w.BearerTokenFile, Logger: log,
	}
}

// lastWords is how long a hub that ends waits for receivers to take the rest of the queue.
const lastWords = 3 * time.Second

// closeWriters sends what is queued, for a few seconds.
func (d *daemon) closeWriters() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	for _, w := range d.writers {
		if err := w.Close(ctx); err != nil {
			d.log.Warn(err.Error())
		}
	}
}

// writerWarnings returns a sentence for each receiver that takes no samples.
func (d *daemon) writerWarnings() []string {
	var out []string
	for i, w := range d.writers {
		if s := w.Status(); !s.Since.IsZero() {
			out = append(out, fmt.Sprintf("remote write to %s: the receiver has taken nothing since %s: %s",
				d.config.RemoteWrites[i].URL, s.Since.UTC().Format(time.RFC3339), s.LastError))
		}
	}
	return out
}

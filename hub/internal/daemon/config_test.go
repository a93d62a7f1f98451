package daemon

import (
	"strings"
	"testing"
	"time"
)

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig([]byte("listen: 127.0.0.1:9000\nretention: 2w\nmax_size: 10GB\nnames: [hub.example]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:9000" || c.Retention.Duration() != 14*24*time.Hour || c.MaxSize != 10_000_000_000 ||
		len(c.Names) != 1 {
		t.Errorf("got %+v", c)
	}
	for _, bad := range []struct{ text, want string }{
		{"listen: [a, b]", "cannot unmarshal"},
		{"retention: soon", "soon"},
		{"retention: -3d", "more than 0"},
		{"max_size: 0", "more than 0"},
		{"tls_key: k.pem", "give both or none"},
		{"schedules: [{name: a, target: 'icmp://h', every: 1m}, {name: a, target: 'icmp://i', every: 1m}]", "a"},
		{"alerts: [{name: a, query: 'up ==', for: 1m}]", "alert a: query: "},
		{"remote_write: [{url: 'ftp://a'}]", "write url"},
		{"remote_write: [{url: 'https://me:secret@a/'}]", "logs would show"},
		{"remote_write: [{url: 'https://a/', username: me}]", "both or none"},
		{"colour: blue", "field colour not found"},
	} {
		if _, err := ParseConfig([]byte(bad.text)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: got %v, want an error with %q", bad.text, err, bad.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error has more than one line: %q", bad.text, err)
		}
	}
}

func TestFill(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		env  func(string) string
		root bool
		want string
	}{
		{env("STATE_DIRECTORY", "/var/lib/linerate-hub:/var/lib/more", "HOME", "/root"), true, "/var/lib/linerate-hub"},
		{env("HOME", "/root"), true, "/var/lib/linerate-hub"},
		{env("HOME", "/home/a", "XDG_STATE_HOME", "/home/a/state"), false, "/home/a/state/linerate-hub"},
		{env("HOME", "/home/a"), false, "/home/a/.local/state/linerate-hub"},
	} {
		var got Config
		if err := got.fill(c.env, c.root); err != nil || got.Data != c.want {
			t.Errorf("got %q, %v; want %q", got.Data, err, c.want)
		}
		if got.Listen != DefaultListen || got.Retention.Duration() != 15*24*time.Hour || got.Host == "" ||
			got.State != "/var/lib/linerate" {
			t.Errorf("defaults: %+v", got)
		}
	}
	if err := (&Config{}).fill(env(), false); err == nil {
		t.Error("no HOME: no error")
	}
}

// FuzzParseConfig checks that any file gives either an error of one line or a valid configuration.
func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{"", "listen: 127.0.0.1:1", "schedules:\n  - {name: a, target: icmp://h, every: 15m}",
		"alerts:\n  - {name: a, query: up, for: 1d}", "a: &a [*a]", "retention: 1e9d"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseConfig(b)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("taken and refused: %v", err)
		}
	})
}

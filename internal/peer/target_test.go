package peer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/peer"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"far":                    "far:7070",
		"far:7071":               "far:7071",
		"far.example.":           "far.example.:7070",
		"192.0.2.7":              "192.0.2.7:7070",
		"192.0.2.7:80":           "192.0.2.7:80",
		"2001:db8::7":            "[2001:db8::7]:7070",
		"[2001:db8::7]":          "[2001:db8::7]:7070",
		"[2001:db8::7]:80":       "[2001:db8::7]:80",
		"fe80::1%eth0":           "[fe80::1%eth0]:7070",
		"ssh://far":              "ssh://far",
		"ssh://me@far:2222":      "ssh://me@far:2222",
		"ssh://me@[2001:db8::7]": "ssh://me@[2001:db8::7]",
		"ssh://far/":             "ssh://far",
		"ssh://[fe80::1%eth0]":   "ssh://[fe80::1%25eth0]",
		"ssh://[fe80::1%25eth0]": "ssh://[fe80::1%25eth0]",
	} {
		got, err := peer.ParseTarget(text)
		if err != nil || got.String() != want {
			t.Errorf("ParseTarget(%q) = %v, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                       "no host",
		":7070":                  "no host",
		"far:":                   "not a number",
		"far:0":                  "from 1 to 65535",
		"far:65536":              "from 1 to 65535",
		"far:http":               "not a number",
		"a:b:c":                  "brackets",
		"me@far":                 "ssh://me@far",
		"-oProxyCommand=x":       "not a host name",
		"far host":               "not a host name",
		"iperf3://far":           "measured and diagnosed and nothing else",
		"http://far":             "iperf3://HOST[:PORT]",
		"ssh://":                 "no host",
		"ssh://-oProxyCommand=x": "must not begin",
		"ssh://-x@far":           "must not begin",
		"ssh://far$(reboot)":     "parse target",
		"ssh://a'b@far":          "quotes",
		"ssh://far:ssh":          "parse target",
		"ssh://far:99999":        "1 to 65535",
		"ssh://far/path":         "follows",
		"ssh://me:secret@far":    "password",
		"ssh://far?x":            "follows",
		"ssh://%25":              "zone",
		"ssh://far%25h":          "zone",
		"ssh://[::1%25a%25b]":    "zone",
	} {
		got, err := peer.ParseTarget(text)
		if !errors.Is(err, peer.ErrTarget) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTarget(%q) = %v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"far", "far:1", "[::1]:2", "::1", "fe80::1%a", "ssh://u@h:3", "ssh://[::1]",
		"iperf3://x", "%zz", "ssh://%2dx", "ssh://%25", "ssh://[fe80::1%eth0]:22"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := peer.ParseTarget(text)
		if err != nil {
			if !errors.Is(err, peer.ErrTarget) {
				t.Fatalf("%v is not ErrTarget", err)
			}
			return
		}
		if target.SSH != nil && (strings.HasPrefix(target.SSH.Host, "-") || strings.HasPrefix(target.SSH.User, "-")) {
			t.Fatalf("%q gives ssh an option: %+v", text, target.SSH)
		}
		again, err := peer.ParseTarget(target.String())
		if err != nil || again.String() != target.String() {
			t.Fatalf("%q reads as %q, which reads as %q, %v", text, target, again, err)
		}
	})
}

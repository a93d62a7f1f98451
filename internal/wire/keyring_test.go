package wire_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/wire"
)

// TestKeyring has clients with several keys at one port, while keys come and go.
func TestKeyring(t *testing.T) {
	one, two, three := wire.NewKey(), wire.NewKey(), wire.NewKey()
	ring, err := wire.NewKeyring(one, two)
	if err != nil {
		t.Fatal(err)
	}
	l, err := wire.ListenKeys(t.Context(), "127.0.0.1:0", ring)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	try := func(key, want wire.Key) {
		t.Helper()
		c, err := wire.Dial(bounded(t), l.Addr().String(), key)
		if want.IsZero() {
			if !errors.Is(err, wire.ErrWrongKey) {
				t.Errorf("a key that is not in the ring: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		if far.Key() != want || !c.Key().IsZero() {
			t.Errorf("the channel has the key %v and %v, want %v and none", far.Key(), c.Key(), want)
		}
	}
	none := wire.Key{}
	try(one, one)
	try(two, two)
	try(three, none)
	if err := ring.Set(three, two); err != nil {
		t.Fatal(err)
	}
	try(one, none)
	try(two, two)
	try(three, three)
	if err := ring.Set(one, none); !errors.Is(err, wire.ErrBadKey) {
		t.Errorf("set no key: %v", err)
	}
	try(three, three) // as before
	if err := ring.Set(); err != nil {
		t.Fatal(err)
	}
	try(two, none)
}

// TestClientThatNamesNoKey has a client of a version without [wire.Key.ID]: one key is enough for
// it, among several it has none, and the certificate that it sees belongs to none of them.
func TestClientThatNamesNoKey(t *testing.T) {
	one, two := wire.NewKey(), wire.NewKey()
	ring, err := wire.NewKeyring(one)
	if err != nil {
		t.Fatal(err)
	}
	l, err := wire.ListenKeys(t.Context(), "127.0.0.1:0", ring)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	shake := func() (tls.ConnectionState, error) {
		config, err := wire.ClientConfig(one)
		if err != nil {
			t.Fatal(err)
		}
		config.ServerName = ""
		var seen tls.ConnectionState
		verify := config.VerifyConnection
		config.VerifyConnection = func(state tls.ConnectionState) error {
			seen = state
			return verify(state)
		}
		c, err := tls.Dial("tcp", l.Addr().String(), config)
		if err == nil {
			c.Close()
		}
		return seen, err
	}
	before, err := shake()
	if err != nil {
		t.Errorf("one key: %v", err)
	}
	if err := ring.Set(one, two); err != nil {
		t.Fatal(err)
	}
	after, err := shake()
	if !errors.Is(err, wire.ErrWrongKey) {
		t.Errorf("two keys: %v", err)
	}
	if before.PeerCertificates[0].Equal(after.PeerCertificates[0]) {
		t.Error("a stranger sees the certificate of a key")
	}
}

func TestKeyID(t *testing.T) {
	one, two := wire.NewKey(), wire.NewKey()
	if again := one.ID(); again != one.ID() || again == two.ID() || !strings.HasSuffix(again, ".linerate.invalid") ||
		strings.Contains(strings.ToUpper(again), strings.ReplaceAll(one.String(), "-", "")[:8]) {
		t.Errorf("%s and %s", one.ID(), two.ID())
	}
}

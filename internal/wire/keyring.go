package wire

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
)

// Keyring holds the keys of the clients that a Listener lets in. It may change while the listener
// runs, and its methods are safe for concurrent use.
//
// A server of TLS 1.3 sends its certificate first, so a client names its key in the ClientHello:
// the server name is [Key.ID], which is derived from the key and reveals nothing of it. A client of
// an older version names none, and gets the only key of a ring with one key. To every other client
// the ring shows the certificate of a key that no client has, so a stranger does not learn which
// keys there are, and a client with another key reports that.
type Keyring struct {
	decoy *ringKey

	mu   sync.Mutex
	keys []*ringKey
}

// ringKey is a key, the name by which clients ask for it, and what TLS needs.
type ringKey struct {
	key    Key
	id     string
	client ed25519.PublicKey // of the client's certificate
	config *tls.Config
}

func newRingKey(k Key) (*ringKey, error) {
	config, err := k.tlsConfig(serverRole, clientRole)
	if err != nil {
		return nil, err
	}
	client, err := k.identity(clientRole)
	if err != nil {
		return nil, err
	}
	return &ringKey{k, k.ID(), client.Public().(ed25519.PublicKey), config}, nil
}

// NewKeyring returns a ring of these keys. The error wraps ErrBadKey for a zero Key.
func NewKeyring(keys ...Key) (*Keyring, error) {
	decoy, err := newRingKey(NewKey())
	if err != nil {
		return nil, err
	}
	r := &Keyring{decoy: decoy}
	return r, r.Set(keys...)
}

// Set replaces the keys of the ring; after an error they are the same as before. It does not end a
// channel that a former key has opened.
func (r *Keyring) Set(keys ...Key) error {
	r.mu.Lock()
	old := r.keys
	r.mu.Unlock()
	all := make([]*ringKey, 0, len(keys))
	for _, k := range keys {
		// Identities take a computation, and a file with a thousand keys changes in one of them.
		var made *ringKey
		for _, o := range old {
			if o.key == k {
				made = o
			}
		}
		if made == nil {
			var err error
			if made, err = newRingKey(k); err != nil {
				return err
			}
		}
		all = append(all, made)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = all
	return nil
}

// pick returns the key that a client names.
func (r *Keyring) pick(id string) *ringKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.keys {
		if k.id == id {
			return k
		}
	}
	if len(r.keys) == 1 {
		return r.keys[0]
	}
	return r.decoy
}

// of returns the key that a client has proved, by its certificate; false if the ring has lost it
// since.
func (r *Keyring) of(state tls.ConnectionState) (Key, bool) {
	if len(state.PeerCertificates) != 1 {
		return Key{}, false
	}
	proved, _ := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.keys {
		if k.client.Equal(proved) {
			return k.key, true
		}
	}
	return Key{}, false
}

// serverConfig returns the configuration of a listener with this ring.
func (r *Keyring) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The protocol that the client asks for is checked first, before any computation: it
		// distinguishes an unrelated web browser or scanner.
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if !slices.Contains(hello.SupportedProtos, alpn) {
				return nil, errForeignProtocol
			}
			return r.pick(hello.ServerName).config, nil
		},
	}
}

// ID returns a public name of the key, which cannot be turned back into it: 32 hexadecimal digits,
// and a domain that never exists (RFC 6761 §6.4), since it travels as a name of a server.
func (k Key) ID() string {
	b, err := hkdf.Key(sha256.New, k.symbols[:], nil, alpn+" name of the key", 16)
	if err != nil {
		panic(fmt.Sprintf("wire: derive the name of a key: %v", err)) // only for a length that HKDF lacks
	}
	return hex.EncodeToString(b) + ".linerate.invalid"
}

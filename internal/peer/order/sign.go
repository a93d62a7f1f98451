package order

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// context separates signatures of orders from those of anything else.
	context = "linerate-order-v1\x00"

	// MaxEnvelope is the largest envelope, in bytes.
	MaxEnvelope   = 4 << 10
	maxSignatures = 4
	maxKeys       = 100
)

// The errors of signatures. Each is a different answer of a host.
var (
	ErrKeyUnknown = errors.New("signed with a key that this host does not know")
	ErrSignature  = errors.New("the signature does not match the bytes")
	ErrTooFew     = errors.New("not enough signatures of different keys")
)

// Signature is what one person adds to an order.
type Signature struct {
	Key   string `json:"key"` // the name of the key in the host's file
	Bytes []byte `json:"ed25519"`
}

// Envelope is a signed order as it travels.
type Envelope struct {
	Payload    []byte      `json:"order"`
	Signatures []Signature `json:"signatures"`
}

// Sign adds a signature over the exact bytes of the payload.
func (e *Envelope) Sign(name string, key ed25519.PrivateKey) {
	e.Signatures = append(e.Signatures, Signature{name, ed25519.Sign(key, signed(e.Payload))})
}

func signed(payload []byte) []byte { return append([]byte(context), payload...) }

// Encode returns the envelope as one line.
func (e Envelope) Encode() ([]byte, error) {
	b, err := json.Marshal(e)
	if err == nil && len(b) > MaxEnvelope {
		err = fmt.Errorf("%w: envelope of %d bytes, at most %d", ErrMalformed, len(b), MaxEnvelope)
	}
	return b, err
}

// Open reads an envelope. Only the spelling of Encode is accepted, so that two spellings of one
// order are never taken for two orders. Every error is an ErrMalformed.
func Open(data []byte) (Envelope, error) {
	var e Envelope
	if len(data) > MaxEnvelope {
		return e, fmt.Errorf("%w: envelope of %d bytes, at most %d", ErrMalformed, len(data), MaxEnvelope)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return Envelope{}, fmt.Errorf("%w: envelope: %w", ErrMalformed, err)
	}
	again, err := json.Marshal(e)
	if err != nil || !bytes.Equal(again, data) {
		return Envelope{}, fmt.Errorf("%w: envelope is not in its one spelling", ErrMalformed)
	}
	if len(e.Signatures) > maxSignatures {
		return Envelope{}, fmt.Errorf("%w: %d signatures, at most %d", ErrMalformed, len(e.Signatures), maxSignatures)
	}
	for _, s := range e.Signatures {
		if !ValidName(s.Key) || len(s.Bytes) != ed25519.SignatureSize {
			return Envelope{}, fmt.Errorf("%w: signature of %.70q", ErrMalformed, s.Key)
		}
	}
	return e, nil
}

// Digest identifies the exact bytes of a payload.
func Digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// Keys are the public keys of the people who may order changes of this host, by name.
type Keys map[string]ed25519.PublicKey

// Fingerprint returns a short text of a public key that people compare: 128 bits of its SHA-256.
func Fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	var words []string
	for i := 0; i < 16; i += 2 {
		words = append(words, hex.EncodeToString(sum[i:i+2]))
	}
	return strings.Join(words, "-")
}

// ErrKeys reports a file of keys that is not in the form of ParseKeys.
var ErrKeys = errors.New("not a file of order keys")

// ParseKeys reads the file of keys: on each line a name and the public key in base64, separated by
// one blank. Empty lines and lines that begin with # do not count. One key under two names is
// refused: it would count as two people.
func ParseKeys(data []byte) (Keys, error) {
	keys := make(Keys)
	n := 0
	for text := range strings.Lines(string(data)) {
		n++
		text = strings.TrimRight(text, "\r\n")
		if text == "" || text[0] == '#' {
			continue
		}
		name, code, _ := strings.Cut(text, " ")
		key, err := base64.StdEncoding.Strict().DecodeString(code)
		switch {
		case !ValidName(name):
			return nil, fmt.Errorf("%w: line %d: %.70q is not a name", ErrKeys, n, name)
		case err != nil || len(key) != ed25519.PublicKeySize:
			return nil, fmt.Errorf("%w: line %d: want %d bytes in base64", ErrKeys, n, ed25519.PublicKeySize)
		case len(keys) == maxKeys:
			return nil, fmt.Errorf("%w: more than %d keys", ErrKeys, maxKeys)
		}
		for other, k := range keys {
			if other == name || bytes.Equal(k, key) {
				return nil, fmt.Errorf("%w: line %d: %s and %s are the same", ErrKeys, n, other, name)
			}
		}
		keys[name] = key
	}
	return keys, nil
}

// Verify checks all signatures of an envelope and returns the names of its signers, sorted. One bad
// signature fails the envelope, also beside good ones.
func (k Keys) Verify(e Envelope) ([]string, error) {
	var names []string
	for _, s := range e.Signatures {
		key, known := k[s.Key]
		switch {
		case !known:
			return nil, fmt.Errorf("%w: %q", ErrKeyUnknown, s.Key)
		case !ed25519.Verify(key, signed(e.Payload), s.Bytes):
			return nil, fmt.Errorf("%w: key %q", ErrSignature, s.Key)
		case !slices.Contains(names, s.Key):
			names = append(names, s.Key)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: none", ErrTooFew)
	}
	slices.Sort(names)
	return names, nil
}

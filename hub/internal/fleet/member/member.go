package member

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// State is what the hub lets a member do.
type State string

// The states of a member.
const (
	Waiting     State = "waiting"
	Joined      State = "member"
	Quarantined State = "quarantined"
	Removed     State = "removed"
)

// Member is one key of one host.
type Member struct {
	ID      string            `json:"id"`  // ULID, drawn by the hub
	Key     string            `json:"key"` // public nkey of the host
	Machine string            `json:"machine,omitempty"`
	Name    string            `json:"name"`
	Groups  []string          `json:"groups,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	State   State             `json:"state"`
	Reason  string            `json:"reason,omitempty"` // why it is not a member
	Joined  time.Time         `json:"joined"`
	Renewed time.Time         `json:"renewed"` // when it last got an identity
	// when it last got another key; the zero time: never
	Rotated time.Time `json:"rotated,omitzero"`
	From    string    `json:"from,omitempty"`
	// id of the invitation; empty: restored from its identity
	Invitation string `json:"invitation,omitempty"`
}

// Fingerprint returns a short text that a person compares: the host shows the same.
func (m Member) Fingerprint() string { return Fingerprint(m.Key) }

// Fingerprint returns 64 bits of the hash of a public key, in four groups.
func Fingerprint(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%x-%x-%x-%x", sum[0:2], sum[2:4], sum[4:6], sum[6:8])
}

// Invitation is the permission to join.
type Invitation struct {
	ID      string            `json:"id"`
	Hash    []byte            `json:"hash"` // SHA-256 of the secret
	Groups  []string          `json:"groups,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Made    time.Time         `json:"made"`
	Expires time.Time         `json:"expires"`
	Uses    int               `json:"uses"` // how many hosts may join
	Used    int               `json:"used"`
	Approve bool              `json:"approve,omitempty"` // a person has to approve each host
	// Withdrawn invitations stay until they expire.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// Sizes of the parts of a token, in bytes.
const (
	idSize     = 8
	secretSize = 16
	pinSize    = sha256.Size
	checkSize  = 4
)

// tokenPrefix begins every token; the digit is the version of its form.
const tokenPrefix = "lr1."

// Token is what a host needs to join: which invitation, its secret, and the hub's authority.
type Token struct {
	ID     [idSize]byte
	Secret [secretSize]byte
	Pin    [pinSize]byte
}

// String returns the token as text without blanks.
func (t Token) String() string {
	b := append(append(append([]byte{}, t.ID[:]...), t.Secret[:]...), t.Pin[:]...)
	sum := sha256.Sum256(b)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(b, sum[:checkSize]...))
}

// The errors of a line.
var (
	ErrNoLine  = errors.New("not a line of `linerate-hub invite`: want HOST:PORT lr1.…")
	ErrMistype = errors.New("the token has a typing error, or a part of it is missing")
)

// ParseToken reads what [Token.String] returned.
func ParseToken(text string) (Token, error) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return Token{}, ErrNoLine
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil || len(b) != idSize+secretSize+pinSize+checkSize {
		return Token{}, ErrMistype
	}
	body := b[:len(b)-checkSize]
	if sum := sha256.Sum256(body); subtle.ConstantTimeCompare(sum[:checkSize], b[len(body):]) != 1 {
		return Token{}, ErrMistype
	}
	var t Token
	copy(t.ID[:], body)
	copy(t.Secret[:], body[idSize:])
	copy(t.Pin[:], body[idSize+secretSize:])
	return t, nil
}

// ParseLine reads the line of an invitation, with or without the command before it. It returns the
// address of the hub and the token.
func ParseLine(words []string) (address string, t Token, err error) {
	words = strings.Fields(strings.Join(words, " "))
	for len(words) > 2 && (words[0] == "linerate-hub" || words[0] == "join" || words[0] == "sudo") {
		words = words[1:]
	}
	if len(words) != 2 {
		return "", t, ErrNoLine
	}
	if _, _, err := net.SplitHostPort(words[0]); err != nil {
		return "", t, fmt.Errorf("address %.100q: want HOST:PORT", words[0])
	}
	t, err = ParseToken(words[1])
	return words[0], t, err
}

// newSecret draws the id and the secret of an invitation.
func newSecret() (t Token) {
	_, _ = rand.Read(t.ID[:]) // never fails: crypto/rand ends the program instead
	_, _ = rand.Read(t.Secret[:])
	return t
}

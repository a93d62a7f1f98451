package bus

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/linerate/linerate/internal/base/durable"
)

// The files of a trust, below its directory. Each is readable by its owner alone.
const (
	operatorKey     = "operator.nk" // may be taken away; only a change of signing keys needs it
	operatorSigning = "operator-signing.nk"
	accountKey      = "account.nk" // may be taken away
	accountSigning  = "account-signing.nk"
	systemKey       = "system.nk"
	operatorJWT     = "operator.jwt"
	accountJWT      = "account.jwt"
	systemJWT       = "system.jwt"
)

// ErrForeign reports an identity that another fleet signed, or none.
var ErrForeign = errors.New("not an identity of this fleet")

// Identity is what a host is to the bus.
type Identity struct {
	ID      string   // of the host: a ULID
	Key     string   // public nkey of the host
	Groups  []string // whose messages it may read
	Labels  map[string]string
	Expires time.Time // by the clock of the hub; zero: never
}

// Tags of an identity. Those of labels hold hexadecimal digits, because tags have no capitals.
const (
	hostTag  = "linerate-host"
	labelTag = "label-"
)

// Trust holds the keys of one fleet. Its methods may be called from any number of goroutines.
type Trust struct {
	dir  string
	fsys durable.FS

	operatorSigner, accountSigner, systemSigner nkeys.KeyPair
	operator, system                            string

	mu      sync.Mutex
	account *jwt.AccountClaims
	text    string // of the account, signed
}

// OpenTrust reads the keys below dir, and makes them if there are none. Part of them is an error:
// new keys beside old ones would lock every host out.
func OpenTrust(fsys durable.FS, dir string) (*Trust, error) {
	if err := durable.MkdirAll(fsys, dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of keys: %w", err)
	}
	t := &Trust{dir: dir, fsys: fsys}
	// Written last, so its absence means that the keys were never finished, and no host has seen
	// them.
	if _, err := fsys.Stat(filepath.Join(dir, accountJWT)); errors.Is(err, fs.ErrNotExist) {
		if err := t.make(); err != nil {
			return nil, fmt.Errorf("make keys of the fleet: %w", err)
		}
	}
	if err := t.read(); err != nil {
		return nil, fmt.Errorf("read keys of the fleet: %w", err)
	}
	return t, nil
}

// make writes new keys and the claims about them.
func (t *Trust) make() error {
	keys := make(map[string]nkeys.KeyPair)
	public := make(map[string]string)
	for name, create := range map[string]func() (nkeys.KeyPair, error){
		operatorKey: nkeys.CreateOperator, operatorSigning: nkeys.CreateOperator,
		accountKey: nkeys.CreateAccount, accountSigning: nkeys.CreateAccount, systemKey: nkeys.CreateAccount,
	} {
		pair, err := create()
		if err != nil {
			return err
		}
		keys[name] = pair
		if public[name], err = pair.PublicKey(); err != nil {
			return err
		}
		seed, err := pair.Seed()
		if err != nil {
			return err
		}
		if err := durable.Replace(t.fsys, filepath.Join(t.dir, name), append(seed, '\n'), 0o600); err != nil {
			return err
		}
	}
	operator := jwt.NewOperatorClaims(public[operatorKey])
	operator.Name = "linerate"
	operator.SigningKeys.Add(public[operatorSigning])
	operator.SystemAccount = public[systemKey]
	system := jwt.NewAccountClaims(public[systemKey])
	system.Name = "system"
	account := jwt.NewAccountClaims(public[accountKey])
	account.Name = "fleet"
	account.SigningKeys.Add(public[accountSigning])
	for _, c := range []struct {
		name   string
		claims jwt.Claims
		by     string
	}{{operatorJWT, operator, operatorKey}, {systemJWT, system, operatorSigning}, {accountJWT, account, operatorSigning}} {
		text, err := c.claims.Encode(keys[c.by])
		if err != nil {
			return err
		}
		if err := durable.Replace(t.fsys, filepath.Join(t.dir, c.name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trust) read() error {
	text := func(name string) (string, error) {
		b, err := t.fsys.ReadFile(filepath.Join(t.dir, name))
		return strings.TrimSpace(string(b)), err
	}
	for name, to := range map[string]*nkeys.KeyPair{operatorSigning: &t.operatorSigner,
		accountSigning: &t.accountSigner, systemKey: &t.systemSigner} {
		seed, err := text(name)
		if err != nil {
			return err
		}
		if *to, err = nkeys.FromSeed([]byte(seed)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	var err error
	if t.operator, err = text(operatorJWT); err != nil {
		return err
	}
	if t.system, err = text(systemJWT); err != nil {
		return err
	}
	if t.text, err = text(accountJWT); err != nil {
		return err
	}
	if t.account, err = jwt.DecodeAccountClaims(t.text); err != nil {
		return fmt.Errorf("%s: %w", accountJWT, err)
	}
	return nil
}

// Sign returns the identity of a host as a JWT.
func (t *Trust) Sign(i Identity) (string, error) {
	if !nkeys.IsValidPublicUserKey(i.Key) {
		return "", fmt.Errorf("sign identity of host %.40q: its key is not one of a host", i.ID)
	}
	if !token(i.ID) {
		return "", fmt.Errorf("sign identity of host %.40q: not an id", i.ID)
	}
	c := jwt.NewUserClaims(i.Key)
	c.Name = i.ID
	c.IssuerAccount = t.account.Subject
	c.Tags.Add(hostTag)
	for k, v := range i.Labels {
		c.Tags.Add(labelTag + hex.EncodeToString([]byte(k+"="+v)))
	}
	c.Pub.Allow.Add(upPrefix + i.ID + ".>")
	c.Sub.Allow.Add(hostPrefix+i.ID+".>", allPrefix+">")
	for _, g := range i.Groups {
		if !token(g) {
			return "", fmt.Errorf("sign identity of host %s: %.40q is not the name of a group", i.ID, g)
		}
		c.Sub.Allow.Add(groupPrefix + g + ".>")
	}
	if !i.Expires.IsZero() {
		c.Expires = i.Expires.Unix()
	}
	return c.Encode(t.accountSigner)
}

// token reports whether a text may be one part of a subject.
func token(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

// GroupName reports whether a text may name a group: 1 to 64 letters, digits, - and _.
func GroupName(s string) bool { return token(s) }

// Verify reads an identity that this fleet signed, whether or not it has expired. Another one is
// ErrForeign.
func (t *Trust) Verify(text string) (Identity, error) {
	c, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	t.mu.Lock()
	ours := t.account.DidSign(c) && c.IssuerAccount == t.account.Subject && c.Tags.Contains(hostTag)
	t.mu.Unlock()
	if !ours {
		return Identity{}, ErrForeign
	}
	i := Identity{ID: c.Name, Key: c.Subject}
	for _, s := range c.Sub.Allow {
		if g, ok := strings.CutPrefix(s, groupPrefix); ok {
			i.Groups = append(i.Groups, strings.TrimSuffix(g, ".>"))
		}
	}
	slices.Sort(i.Groups)
	for _, tag := range c.Tags {
		code, ok := strings.CutPrefix(tag, labelTag)
		b, err := hex.DecodeString(code)
		if k, v, label := strings.Cut(string(b), "="); ok && err == nil && label {
			if i.Labels == nil {
				i.Labels = make(map[string]string)
			}
			i.Labels[k] = v
		}
	}
	if c.Expires != 0 {
		i.Expires = time.Unix(c.Expires, 0).UTC()
	}
	return i, nil
}

// Revoke ends every identity of a key that was signed up to now, or up to at if that is later. It
// returns once the revocation is on disk; [Hub.Publish] makes it known to the servers. Revocations
// of more than keep ago are dropped: what they ended has expired by then.
func (t *Trust) Revoke(key string, at time.Time, keep time.Duration) error {
	return t.change(func(a *jwt.AccountClaims) bool {
		for k, when := range a.Revocations {
			if when < at.Add(-keep).Unix() {
				delete(a.Revocations, k)
			}
		}
		a.RevokeAt(key, at)
		return true
	})
}

// Readmit takes a revocation back, so that an identity signed within the same second is valid.
func (t *Trust) Readmit(key string) error {
	return t.change(func(a *jwt.AccountClaims) bool {
		_, revoked := a.Revocations[key]
		a.ClearRevocation(key)
		return revoked
	})
}

// Revoked reports whether a key is revoked.
func (t *Trust) Revoked(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, revoked := t.account.Revocations[key]
	return revoked
}

// change edits the claims of the account and writes them, if the edit returns true.
func (t *Trust) change(edit func(*jwt.AccountClaims) bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, err := jwt.DecodeAccountClaims(t.text) // a copy, so that a failed write changes nothing
	if err != nil {
		return err
	}
	if !edit(a) {
		return nil
	}
	text, err := a.Encode(t.operatorSigner)
	if err == nil {
		err = durable.Replace(t.fsys, filepath.Join(t.dir, accountJWT), []byte(text), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write claims of the fleet: %w", err)
	}
	t.account, t.text = a, text
	return nil
}

// accountNow returns the account's public key and its signed claims.
func (t *Trust) accountNow() (key, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.account.Subject, t.text
}

// Resolver returns the part of a configuration of nats-server that makes it trust this fleet. dir
// is where that server keeps the claims of accounts.
func (t *Trust) Resolver(dir string) (string, error) {
	account, accountText := t.accountNow()
	s, err := jwt.DecodeAccountClaims(t.system)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`operator: %s
system_account: %s
resolver: {type: full, dir: %q, allow_delete: false, interval: "2m"}
resolver_preload: {
  %s: %s
  %s: %s
}
`, t.operator, s.Subject, dir, s.Subject, t.system, account, accountText), nil
}

// Key is the private key of a host.
type Key struct{ pair nkeys.KeyPair }

// NewKey makes a key.
func NewKey() (Key, error) {
	pair, err := nkeys.CreateUser()
	return Key{pair}, err
}

// ReadKey reads a key that [Key.Write] wrote.
func ReadKey(fsys durable.FS, name string) (Key, error) {
	b, err := fsys.ReadFile(name)
	if err != nil {
		return Key{}, err
	}
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(b))))
	if err != nil {
		return Key{}, fmt.Errorf("read key %s: %w", name, err)
	}
	return Key{pair}, nil
}

// Write stores the key, readable by its owner alone.
func (k Key) Write(fsys durable.FS, name string) error {
	seed, err := k.pair.Seed()
	if err != nil {
		return err
	}
	return durable.Replace(fsys, name, append(seed, '\n'), 0o600)
}

// Public returns the public half.
func (k Key) Public() (string, error) { return k.pair.PublicKey() }

// Sign signs bytes.
func (k Key) Sign(b []byte) ([]byte, error) { return k.pair.Sign(b) }

// VerifySignature checks a signature of a public key of a host.
func VerifySignature(public string, message, signature []byte) error {
	if !nkeys.IsValidPublicUserKey(public) {
		return errors.New("not the key of a host")
	}
	pair, err := nkeys.FromPublicKey(public)
	if err != nil {
		return err
	}
	return pair.Verify(message, signature)
}

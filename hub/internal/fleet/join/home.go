package join

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/internal/base/durable"
)

// The files of a home, readable by their owner alone.
const (
	keyFile  = "host.nk"
	nextFile = "host-next.nk"
	homeFile = "membership.json"
)

// ErrNotJoined reports a host without a membership.
var ErrNotJoined = errors.New("this host has not joined a fleet; use the line that `linerate-hub invite` prints")

// UnreachableError reports a hub that does not answer at its address, or something else that does.
type UnreachableError struct {
	Hub string // HOST:PORT
	Err error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("ask hub %s: %v", e.Hub, e.Err) }

func (e *UnreachableError) Unwrap() error { return e.Err }

// Hint returns what the user can do.
func (e *UnreachableError) Hint() string {
	return "is this the address that `linerate-hub invite` printed, does the hub run, and does a firewall let it through?"
}

// errNoAnswer reports what answers in another protocol, such as the bus of a hub.
var errNoAnswer = errors.New("the answer is not one of a hub; is this the port of the invitation?")

// Home is what a host keeps of its membership.
type Home struct {
	Hub        string    `json:"hub"` // HOST:PORT where it joined
	Pin        string    `json:"pin"` // SHA-256 of the hub's authority
	ID         string    `json:"id,omitempty"`
	Identity   string    `json:"identity,omitempty"`
	Issued     time.Time `json:"issued,omitzero"` // by the clock of the hub
	Expires    time.Time `json:"expires,omitzero"`
	Bus        []string  `json:"bus,omitempty"`
	Roots      string    `json:"roots,omitempty"`
	ServerName string    `json:"server_name,omitempty"`
	InGroups   []string  `json:"groups,omitempty"`
	// Token is the invitation, until the host has its identity.
	Token string `json:"token,omitempty"`

	fsys durable.FS
	dir  string
	key  bus.Key
	now  func() time.Time
	got  time.Time // when the identity came, by the clock of the host; a restart counts from there
	// of the connections to the hub, the bus included
	sessions tls.ClientSessionCache
}

// About is what a host says of itself when it joins.
type About struct {
	Machine string
	Name    string
}

// Machine returns the hash of this machine's id, or an empty text if it has none. The id itself
// never leaves the host (machine-id(5) asks for that).
func Machine(files ...string) string {
	if len(files) == 0 {
		files = []string{"/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostid"}
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if id := strings.TrimSpace(string(b)); err == nil && len(id) >= 8 && id != "uninitialized" {
			sum := sha256.Sum256([]byte("linerate fleet machine\x00" + id))
			return hex.EncodeToString(sum[:16])
		}
	}
	return ""
}

// Open reads the membership below dir.
func Open(fsys durable.FS, dir string) (*Home, error) {
	h := &Home{fsys: fsys, dir: dir, now: time.Now, sessions: bus.Sessions()}
	b, err := fsys.ReadFile(filepath.Join(dir, homeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotJoined
	}
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	if err := json.Unmarshal(b, h); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, homeFile), err)
	}
	h.key, err = bus.ReadKey(fsys, filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	return h, nil
}

// Prepare makes a key below dir and notes the invitation, unless the host has joined already. It
// sends nothing.
func Prepare(fsys durable.FS, dir, address string, t member.Token) (*Home, error) {
	old, err := Open(fsys, dir)
	if err == nil && old.Identity != "" {
		return nil, fmt.Errorf("this host is %s in the fleet of %s already; `linerate-hub leave` ends that", old.ID, old.Hub)
	}
	if err != nil && !errors.Is(err, ErrNotJoined) {
		return nil, err
	}
	if err := durable.MkdirAll(fsys, dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the membership: %w", err)
	}
	h := &Home{fsys: fsys, dir: dir, now: time.Now, sessions: bus.Sessions(), Hub: address,
		Pin: hex.EncodeToString(t.Pin[:]), Token: t.String()}
	if old != nil { // a join that did not finish: the hub may know its key
		h.key = old.key
	} else {
		if h.key, err = bus.NewKey(); err != nil {
			return nil, err
		}
		if err := h.key.Write(fsys, filepath.Join(dir, keyFile)); err != nil {
			return nil, fmt.Errorf("write key of the host: %w", err)
		}
	}
	return h, h.store()
}

// store writes the membership.
func (h *Home) store() error {
	b, err := json.MarshalIndent(h, "", "  ")
	if err == nil {
		err = durable.Replace(h.fsys, filepath.Join(h.dir, homeFile), append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write membership: %w", err)
	}
	return nil
}

// Leave removes the membership. It works without the hub, which keeps an entry that a person can
// remove.
func (h *Home) Leave() error {
	// The first one counts at once. It goes again at the end, because a node that had looked before
	// may have written it since; one that writes it even later misses the key, see take.
	for _, name := range []string{homeFile, keyFile, nextFile, homeFile} {
		if err := h.fsys.Remove(filepath.Join(h.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("leave the fleet: %w", err)
		}
	}
	return h.fsys.SyncDir(h.dir)
}

// ErrLeft reports a host that has left the fleet while its node ran.
var ErrLeft = errors.New("this host has left the fleet")

// Left reports whether the membership has been removed since it was read.
func (h *Home) Left() bool {
	_, err := h.fsys.Stat(filepath.Join(h.dir, homeFile))
	return errors.Is(err, fs.ErrNotExist)
}

// Key returns the key of the host.
func (h *Home) Key() bus.Key { return h.key }

// Fingerprint returns the short text that the hub shows for this host too.
func (h *Home) Fingerprint() string {
	public, err := h.key.Public()
	if err != nil {
		return ""
	}
	return member.Fingerprint(public)
}

// Servers returns the addresses of the bus.
func (h *Home) Servers() []string {
	host, _, _ := net.SplitHostPort(h.Hub)
	var all []string
	for _, text := range h.Bus {
		if u, err := url.Parse(text); err == nil && u.Hostname() == "" {
			u.Host = net.JoinHostPort(host, u.Port())
			text = u.String()
		}
		all = append(all, text)
	}
	return all
}

// pin returns the fingerprint of the hub's authority.
func (h *Home) pin() (pin [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(h.Pin)
	if err != nil || len(b) != len(pin) {
		return pin, errors.New("the membership has no authority of a hub")
	}
	return [sha256.Size]byte(b), nil
}

// TLS returns the configuration of connections to the bus. At the hub's own bus they resume the
// session in which the identity came.
func (h *Home) TLS() (*tls.Config, error) {
	pin, err := h.pin()
	if err != nil {
		return nil, err
	}
	root, more := pem.Decode([]byte(h.Roots))
	if h.ServerName == bus.ServerName && root != nil && len(bytes.TrimSpace(more)) == 0 &&
		sha256.Sum256(root.Bytes) == pin {
		return bus.Pinned(pin, h.sessions), nil
	}
	return bus.Client([]byte(h.Roots), h.ServerName)
}

// Groups returns the groups whose messages the host may read.
func (h *Home) Groups() []string { return h.InGroups }

// RenewIn returns the time until the identity should be renewed: at two thirds of its life, counted
// from when it came. The clock of the host may be wrong by any amount.
func (h *Home) RenewIn() time.Duration {
	life := h.Expires.Sub(h.Issued)
	if h.got.IsZero() { // read from disk: it is not known how old it is
		return 0
	}
	return life*2/3 - h.now().Sub(h.got)
}

// Ask joins, if the host has no identity yet, and renews it otherwise. A *member.Refusal is the
// hub's answer.
func (h *Home) Ask(ctx context.Context, about About) error {
	public, err := h.key.Public()
	if err != nil {
		return err
	}
	q := question{Op: opRenew, Key: public, Identity: h.Identity, Machine: about.Machine, Name: about.Name}
	if h.Identity == "" {
		t, err := member.ParseToken(h.Token)
		if err != nil {
			return err
		}
		q.Op, q.Invitation, q.Secret = opJoin, t.ID[:], t.Secret[:]
	}
	if h.Left() {
		return ErrLeft
	}
	a, err := h.exchange(ctx, q, h.key, nil)
	if refusal, ok := errors.AsType[*member.Refusal](err); ok && !refusal.Retry && h.rotating() {
		return h.Rotate(ctx, about)
	}
	if err != nil {
		return err
	}
	return h.take(a)
}

// rotating reports whether a change of keys has begun and not ended.
func (h *Home) rotating() bool {
	_, err := h.fsys.Stat(filepath.Join(h.dir, nextFile))
	return err == nil
}

// take keeps an answer.
func (h *Home) take(a answer) error {
	if h.Left() { // meanwhile: an answer must not bring the membership back
		return ErrLeft
	}
	h.ID, h.Identity, h.Issued, h.Expires = a.ID, a.Identity, a.Issued, a.Expires
	h.Bus, h.Roots, h.ServerName, h.InGroups, h.Token = a.Bus, a.Roots, a.ServerName, a.Groups, ""
	h.got = h.now()
	if err := h.store(); err != nil {
		return err
	}
	if _, err := h.fsys.Stat(filepath.Join(h.dir, keyFile)); errors.Is(err, fs.ErrNotExist) { // left meanwhile
		return errors.Join(ErrLeft, h.Leave())
	}
	return nil
}

// Rotate gives the host a new key. The new key is on disk before the hub hears of it: if the answer
// is lost, the next call finishes what this one began.
func (h *Home) Rotate(ctx context.Context, about About) error {
	name := filepath.Join(h.dir, nextFile)
	next, err := bus.ReadKey(h.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		if next, err = bus.NewKey(); err == nil {
			err = next.Write(h.fsys, name)
		}
	}
	if err != nil {
		return fmt.Errorf("make next key of the host: %w", err)
	}
	public, err := h.key.Public()
	if err != nil {
		return err
	}
	nextPublic, err := next.Public()
	if err != nil {
		return err
	}
	q := question{Op: opRotate, Key: public, Next: nextPublic, Machine: about.Machine}
	a, err := h.exchange(ctx, q, h.key, &next)
	if refusal, ok := errors.AsType[*member.Refusal](err); ok && !refusal.Retry {
		// Unknown: an earlier call may have reached the hub. Then the next key is the key.
		a, err = h.exchange(ctx, question{Op: opRenew, Key: nextPublic, Machine: about.Machine, Name: about.Name}, next, nil)
	}
	if err != nil {
		return err
	}
	h.key = next
	if err := next.Write(h.fsys, filepath.Join(h.dir, keyFile)); err != nil {
		return err
	}
	if err := h.take(a); err != nil {
		return err
	}
	return h.fsys.Remove(name)
}

// exchange sends a question and returns the answer.
func (h *Home) exchange(ctx context.Context, q question, key bus.Key, next *bus.Key) (answer, error) {
	var a answer
	pin, err := h.pin()
	if err != nil {
		return a, err
	}
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	dialer := tls.Dialer{Config: bus.Pinned(pin, h.sessions)}
	raw, err := dialer.DialContext(ctx, "tcp", h.Hub)
	switch {
	case errors.Is(err, bus.ErrOtherHub):
		return a, fmt.Errorf("ask hub %s: %w", h.Hub, err)
	case err != nil:
		return a, &UnreachableError{h.Hub, err}
	}
	c := raw.(*tls.Conn) // as tls.Dialer promises
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return a, err
		}
	}
	text, err := proof(c.ConnectionState(), q)
	if err != nil {
		return a, err
	}
	if q.Signature, err = key.Sign(text); err != nil {
		return a, err
	}
	if next != nil {
		if q.NextSignature, err = next.Sign(text); err != nil {
			return a, err
		}
	}
	b, err := json.Marshal(q)
	if err == nil {
		_, err = c.Write(append(b, '\n'))
	}
	if err == nil {
		err = readLine(c, longestAnswer, &a)
	}
	_, garbled := errors.AsType[*json.SyntaxError](err)
	switch {
	case garbled, errors.Is(err, errLong):
		return a, &UnreachableError{h.Hub, errNoAnswer}
	case err != nil:
		return a, &UnreachableError{h.Hub, err}
	case a.Refusal != "":
		return a, fmt.Errorf("the hub refuses: %w", &member.Refusal{Reason: a.Refusal, Retry: a.Retry})
	case a.Identity == "" || a.ID == "" || len(a.Bus) == 0:
		return a, &UnreachableError{h.Hub, errNoAnswer}
	}
	return a, nil
}

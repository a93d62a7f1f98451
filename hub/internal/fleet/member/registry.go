package member

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/linerate/linerate/internal/base/durable"
)

// Bounds of an invitation and of a log.
const (
	MostUses   = 1_000_000
	LongestTTL = 90 * 24 * time.Hour
	mostBatch  = 256 << 10 // bytes of one record
	// A host that has not asked for this long needs approval when it returns.
	silentAtMost = 30 * 24 * time.Hour
	// A renewal this soon after the last one is not noted: a host that asks without end must not fill
	// the disk of the hub.
	renewalNoted = time.Minute
	// A host gets one new key in this time. Each is a line of the log, and each old key is remembered
	// as revoked: a host that rotates without end must fill neither.
	rotatedAtMost = 10 * time.Minute
	leastRewrite  = 1000 // lines of a log that is rewritten
	mostHistory   = 4    // times the lines that a log needs
)

// Refusal is why a host does not get an identity. Its text is for the administrator of the host.
type Refusal struct {
	Reason string
	Retry  bool // a person may decide otherwise: ask again later
}

func (e *Refusal) Error() string { return e.Reason }

// The refusals that show a stranger nothing.
var (
	errNoInvitation = &Refusal{Reason: "the invitation is not known, has expired, or has no uses left"}
	errUnknown      = &Refusal{Reason: "the hub does not know this key; join again with a new invitation"}
)

// ErrNoMember reports an id that no member or invitation has.
var ErrNoMember = errors.New("no member or invitation has this id")

// Options say where a registry is.
type Options struct {
	FS  durable.FS
	Dir string
	Now func() time.Time // nil: the clock of the host
}

// Registry is the register of a fleet. Its methods may be called from any number of goroutines.
type Registry struct {
	now func() time.Time

	mu       sync.Mutex
	members  map[string]*Member
	keys     map[string]string              // public key → id
	machines map[string]map[string]struct{} // machine → ids
	invites  map[string]*Invitation
	runs     map[string]*running // by id; memory only

	fsys   durable.FS
	name   string // of the log
	log    *durable.Log
	lock   interface{ Close() error }
	lines  int    // of the log
	broken error  // of a rewrite: the file may be another one by now
	queue  []byte // records that wait for the next sync, as JSON lines
	batch  *batch // of the queue
	kick   chan struct{}
	done   chan struct{}
}

// batch is the wait of those whose records share one sync.
type batch struct {
	done chan struct{}
	err  error
}

// record is a line of the log: the new state of one thing.
type record struct {
	Member     *Member     `json:"member,omitempty"`
	Invitation *Invitation `json:"invitation,omitempty"`
}

// Open reads the register, and makes an empty one if there is none.
func Open(o Options) (*Registry, error) {
	r := &Registry{now: o.Now, members: make(map[string]*Member), keys: make(map[string]string),
		machines: make(map[string]map[string]struct{}), invites: make(map[string]*Invitation),
		runs: make(map[string]*running), kick: make(chan struct{}, 1), done: make(chan struct{})}
	if r.now == nil {
		r.now = time.Now
	}
	if err := durable.MkdirAll(o.FS, o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open register of the fleet: %w", err)
	}
	lock, err := o.FS.Lock(filepath.Join(o.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open register of the fleet: %w", err)
	}
	if err := r.load(o.FS, filepath.Join(o.Dir, "members.log")); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("open register of the fleet: %w", err)
	}
	r.lock = lock
	go r.write()
	return r, nil
}

// load reads the log, and rewrites one of which most is history.
func (r *Registry) load(fsys durable.FS, name string) error {
	log, records, err := durable.OpenMarkedLog(fsys, name)
	if err != nil {
		return err
	}
	r.fsys, r.name = fsys, name
	lines := 0
	for n, b := range records {
		for line := range strings.Lines(string(b)) {
			var one record
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				_ = log.Close()
				return fmt.Errorf("read %s: record %d: %w", name, n, err)
			}
			r.apply(one)
			lines++
		}
	}
	r.log, r.lines = log, lines
	if lines < leastRewrite || lines < 2*(len(r.members)+len(r.invites)) {
		return nil
	}
	if err := log.Close(); err != nil {
		return err
	}
	if err := durable.RewriteMarkedLog(fsys, name, r.whole()); err != nil {
		return err
	}
	r.log, _, err = durable.OpenMarkedLog(fsys, name)
	r.lines = len(r.members) + len(r.invites)
	return err
}

// whole returns the present state as records of a log. Invitations that have ended are left out.
func (r *Registry) whole() [][]byte {
	var all [][]byte
	var b []byte
	add := func(one record) {
		b = append(b, encode(one)...)
		if len(b) > mostBatch {
			all, b = append(all, b), nil
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.members)) {
		add(record{Member: r.members[id]})
	}
	for id, i := range r.invites {
		if i.Expires.Before(r.now()) {
			delete(r.invites, id)
			continue
		}
		add(record{Invitation: i})
	}
	if len(b) > 0 {
		all = append(all, b)
	}
	return all
}

func encode(one record) []byte {
	b, err := json.Marshal(one)
	if err != nil {
		panic(err) // plain data
	}
	return append(b, '\n')
}

// apply puts a new state in force.
func (r *Registry) apply(one record) {
	if i := one.Invitation; i != nil {
		r.invites[i.ID] = i
	}
	m := one.Member
	if m == nil {
		return
	}
	if old := r.members[m.ID]; old != nil {
		delete(r.keys, old.Key)
		delete(r.machines[old.Machine], old.ID)
	}
	r.members[m.ID] = m
	r.keys[m.Key] = m.ID
	if m.Machine != "" && m.State != Removed {
		if r.machines[m.Machine] == nil {
			r.machines[m.Machine] = make(map[string]struct{})
		}
		r.machines[m.Machine][m.ID] = struct{}{}
	}
}

// put applies a change and queues it for the disk. The caller holds r.mu, and waits with
// [Registry.wait] without it. Memory is ahead of the disk in between; no caller learns of it before
// the wait has ended. After a failed write the change may or may not come back after a restart, and
// the next one writes the whole register anew.
func (r *Registry) put(changes ...record) *batch {
	if r.batch == nil {
		r.batch = &batch{done: make(chan struct{})}
	}
	for _, one := range changes {
		r.apply(one)
		r.queue = append(r.queue, encode(one)...)
		r.lines++
	}
	select {
	case r.kick <- struct{}{}:
	default:
	}
	return r.batch
}

func (b *batch) wait() error {
	<-b.done
	return b.err
}

// write appends what is queued, as one record, until Close.
func (r *Registry) write() {
	defer close(r.done)
	for range r.kick {
		for {
			r.mu.Lock()
			b, waiting := r.queue, r.batch
			r.queue, r.batch = nil, nil
			r.mu.Unlock()
			if waiting == nil {
				break
			}
			if r.log.Err() != nil || r.broken != nil {
				waiting.err = r.mend()
				b = nil
			}
			for len(b) > 0 && waiting.err == nil {
				n := len(b)
				if n > mostBatch { // at the end of a line
					n = strings.LastIndexByte(string(b[:mostBatch]), '\n') + 1
				}
				waiting.err = r.log.Append(b[:n])
				b = b[n:]
			}
			if waiting.err == nil && r.mostlyHistory() {
				_ = r.mend() // what waits is on disk; the error is in r.broken, and the next change tries again
			}
			close(waiting.done)
		}
	}
}

// mostlyHistory reports whether the log has grown long while the hub runs. Without this, a fleet of
// 5000 hosts adds a gigabyte a year, which the next start has to read.
func (r *Registry) mostlyHistory() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines >= leastRewrite && r.lines >= mostHistory*(len(r.members)+len(r.invites))
}

// mend writes the register anew: after a failed write, such as one on a disk that was full, and
// where most of the log is history. Memory has every change, those of the batch that waits
// included, so nothing is appended afterwards.
func (r *Registry) mend() error {
	r.mu.Lock()
	whole := r.whole()
	r.lines = len(r.members) + len(r.invites)
	r.mu.Unlock()
	// After an error the next change tries again.
	if r.broken = durable.RewriteMarkedLog(r.fsys, r.name, whole); r.broken != nil {
		return r.broken
	}
	log, _, err := durable.OpenMarkedLog(r.fsys, r.name)
	if r.broken = err; err != nil {
		return err
	}
	_ = r.log.Close() // its records are in the new one
	r.log = log
	return nil
}

// Close waits for the disk and closes the log. No other method may run.
func (r *Registry) Close() error {
	close(r.kick)
	<-r.done
	return errors.Join(r.log.Close(), r.lock.Close())
}

// Invite makes an invitation and returns its token, with the pin given. It is the only time that
// the secret exists here.
func (r *Registry) Invite(i Invitation, ttl time.Duration, pin [32]byte) (Invitation, Token, error) {
	switch {
	case ttl <= 0 || ttl > LongestTTL:
		return i, Token{}, fmt.Errorf("an invitation lasts at most %v, and more than nothing", LongestTTL)
	case i.Uses < 1 || i.Uses > MostUses:
		return i, Token{}, fmt.Errorf("an invitation has 1 to %d uses", MostUses)
	}
	t := newSecret()
	t.Pin = pin
	sum := sha256.Sum256(t.Secret[:])
	i.ID, i.Hash, i.Used = hex.EncodeToString(t.ID[:]), sum[:], 0
	i.Made = r.now().UTC()
	i.Expires = i.Made.Add(ttl)
	r.mu.Lock()
	b := r.put(record{Invitation: &i})
	r.mu.Unlock()
	return i, t, b.wait()
}

// Request is what a host sends to join.
type Request struct {
	Invitation [8]byte
	Secret     [16]byte
	Key        string // public; the caller has checked that the host holds the private half
	Machine    string
	Name       string
	From       string // address
}

// Join uses an invitation. A host that is refused gets a *Refusal. A request that is repeated,
// because its answer was lost, gets the same answer and uses nothing.
func (r *Registry) Join(q Request) (Member, error) {
	m, b, err := r.join(q)
	if b != nil {
		if failed := b.wait(); failed != nil {
			return Member{}, failed
		}
	}
	return m, err
}

func (r *Registry) join(q Request) (Member, *batch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now().UTC()
	i := r.invites[hex.EncodeToString(q.Invitation[:])]
	sum := sha256.Sum256(q.Secret[:])
	if i == nil || subtle.ConstantTimeCompare(sum[:], i.Hash) != 1 {
		return Member{}, nil, errNoInvitation
	}
	if m := r.members[r.keys[q.Key]]; m != nil && m.Invitation == i.ID {
		return r.renew(m, q.Machine, now)
	} else if m != nil {
		return Member{}, nil, &Refusal{Reason: "this key has joined before; a new invitation needs a new key"}
	}
	if i.Withdrawn || !now.Before(i.Expires) || i.Used >= i.Uses {
		return Member{}, nil, errNoInvitation
	}
	used := *i
	used.Used++
	m := &Member{ID: ulid.Make().String(), Key: q.Key, Machine: q.Machine, Name: q.Name, Groups: i.Groups,
		Labels: i.Labels, State: Joined, Joined: now, Renewed: now, From: q.From, Invitation: i.ID}
	if i.Approve {
		m.State, m.Reason = Waiting, "the invitation asks for approval"
	}
	for id := range r.machines[q.Machine] {
		other := r.members[id]
		m.State = Quarantined
		m.Reason = fmt.Sprintf("the machine of %s (%s) with another key: a cloned image, or installed anew",
			other.ID, other.Name)
	}
	b := r.put(record{Invitation: &used}, record{Member: m})
	return *m, b, refusal(m)
}

// refusal returns why a member gets no identity, or nil.
func refusal(m *Member) error {
	switch m.State {
	case Joined:
		return nil
	case Waiting, Quarantined:
		return &Refusal{Reason: string(m.State) + ": " + m.Reason, Retry: true}
	}
	return &Refusal{Reason: "removed from the fleet"}
}

// renew decides about a host that already has an entry. The caller holds r.mu.
func (r *Registry) renew(m *Member, machine string, now time.Time) (Member, *batch, error) {
	next := *m
	if m.State == Joined {
		switch {
		case machine != m.Machine && machine != "" && m.Machine != "":
			next.State = Quarantined
			next.Reason = "its key came from another machine: a copied key, or a new machine id"
		case now.Sub(m.Renewed) > silentAtMost:
			next.State = Waiting
			next.Reason = fmt.Sprintf("silent for %d days", int(now.Sub(m.Renewed).Hours()/24))
		case now.Sub(m.Renewed) >= renewalNoted || now.Before(m.Renewed):
			next.Renewed = now
		}
	}
	if next.State == m.State && next.Renewed.Equal(m.Renewed) {
		return *m, nil, refusal(m)
	}
	b := r.put(record{Member: &next})
	return next, b, refusal(&next)
}

// Renew decides about a host that asks for its next identity. The caller has checked that the host
// holds the key.
func (r *Registry) Renew(key, machine string) (Member, error) {
	r.mu.Lock()
	m := r.members[r.keys[key]]
	if m == nil {
		r.mu.Unlock()
		return Member{}, errUnknown
	}
	next, b, err := r.renew(m, machine, r.now().UTC())
	r.mu.Unlock()
	if b != nil {
		if failed := b.wait(); failed != nil {
			return Member{}, failed
		}
	}
	return next, err
}

// Restore takes a host back whose identity this fleet signed, after the register was lost. The
// caller has verified the identity, that the host holds the key, and that the key is not revoked.
// A host that is in the register already is renewed.
func (r *Registry) Restore(id, key string, groups []string, labels map[string]string, q Request) (Member, error) {
	r.mu.Lock()
	if r.keys[key] != "" || r.members[id] != nil {
		r.mu.Unlock()
		return r.Renew(key, q.Machine)
	}
	now := r.now().UTC()
	m := &Member{ID: id, Key: key, Machine: q.Machine, Name: q.Name, Groups: groups, Labels: labels,
		State: Joined, Joined: now, Renewed: now, From: q.From}
	b := r.put(record{Member: m})
	r.mu.Unlock()
	return *m, b.wait()
}

// Rotate gives a member another key. The caller has checked that the host holds both.
func (r *Registry) Rotate(old, key, machine string) (Member, error) {
	r.mu.Lock()
	m := r.members[r.keys[old]]
	if m == nil {
		r.mu.Unlock()
		return Member{}, errUnknown
	}
	if r.keys[key] != "" {
		r.mu.Unlock()
		return Member{}, &Refusal{Reason: "the new key is already in use"}
	}
	now := r.now().UTC()
	if since := now.Sub(m.Rotated); m.State == Joined && since >= 0 && since < rotatedAtMost {
		r.mu.Unlock()
		return Member{}, &Refusal{Reason: fmt.Sprintf("this host got a new key %d minutes ago: the next one is possible "+
			"%d minutes after that", int(since.Minutes()), int(rotatedAtMost.Minutes())), Retry: true}
	}
	next, b, err := r.renew(m, machine, now)
	if err == nil {
		next.Key, next.Rotated = key, now
		b = r.put(record{Member: &next})
	}
	r.mu.Unlock()
	if b != nil {
		if failed := b.wait(); failed != nil {
			return Member{}, failed
		}
	}
	return next, err
}

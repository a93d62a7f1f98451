package roster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// lookEvery is how often a serve looks at the file, which bounds how long a revoked peer stays.
	lookEvery = time.Second
	// noteEvery is how often last uses are written.
	noteEvery = time.Minute
)

// Live is the present content of a file, while a serve runs.
type Live struct {
	file File
	ring *wire.Keyring
	log  func(string)
	now  func() time.Time

	looking sync.Mutex // held by one Look at a time, before mu
	seen    fs.FileInfo
	trouble string // why the file was not taken over last time

	mu    sync.Mutex
	peers []Peer
	uses  map[string]Use       // not yet written
	noted map[string]time.Time // the use of each key that was written last
	stuck bool                 // they could not be
}

// Follow reads a file, which may be missing. log receives one sentence for each change and for each
// problem.
func Follow(f File, log func(string)) (*Live, error) {
	ring, err := wire.NewKeyring()
	if err != nil {
		return nil, err
	}
	l := &Live{file: f, ring: ring, log: log, now: time.Now, uses: make(map[string]Use),
		noted: make(map[string]time.Time)}
	// Before the content: a change in between is then seen as one.
	l.seen, _ = f.FS.Stat(f.Path)
	peers, err := f.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return l, l.take(peers)
}

// Keys returns the ring with the keys of the present peers. Expired ones are among them, so that
// their clients read the reason.
func (l *Live) Keys() *wire.Keyring { return l.ring }

// File returns the file.
func (l *Live) File() File { return l.file }

// Peers returns the present peers in the order of the file.
func (l *Live) Peers() []Peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peers
}

// Of returns the peer with a key, which the caller must not change; nil if there is none now.
func (l *Live) Of(k wire.Key) *Peer {
	peers := l.Peers()
	for i := range peers {
		if peers[i].Key == k {
			return &peers[i]
		}
	}
	return nil
}

// Expired reports whether the key of a peer has ended.
func (l *Live) Expired(p *Peer) bool { return p.Expired(l.now()) }

// Used notes that a peer has connected from an address.
func (l *Live) Used(p *Peer, from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uses[p.Key.ID()] = Use{l.now().UTC().Truncate(time.Second), from}
}

// Run looks at the file and writes last uses until ctx ends, and calls looked after each look.
func (l *Live) Run(ctx context.Context, looked func()) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			l.Look()
			looked()
			l.note(noteEvery)
		case <-ctx.Done():
			l.note(0)
			return
		}
	}
}

// Look takes over the file if it has changed.
func (l *Live) Look() {
	l.looking.Lock()
	defer l.looking.Unlock()
	info, err := l.file.FS.Stat(l.file.Path)
	if err == nil && l.seen != nil && same(info, l.seen) {
		return
	}
	if errors.Is(err, fs.ErrNotExist) && l.seen == nil && l.trouble == "" {
		return
	}
	peers, err := l.file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		peers, err, info = nil, nil, nil
	}
	changed := !reflect.DeepEqual(peers, l.Peers())
	if err == nil && changed {
		err = l.take(peers)
	}
	if err != nil {
		// The file may be repaired without another time or size, so it is read again each time.
		if l.seen = nil; err.Error() != l.trouble {
			l.trouble = err.Error()
			l.log(fmt.Sprintf("%v; the peers stay as they were", err))
		}
		return
	}
	if changed || l.trouble != "" {
		l.log(fmt.Sprintf("%s is read again; number of peers: %d", l.file.Path, len(peers)))
	}
	l.seen, l.trouble = info, ""
}

// same reports whether a file is the one that was read: edits replace it, and a person's editor may
// write into it.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// take makes peers the present ones.
func (l *Live) take(peers []Peer) error {
	keys := make([]wire.Key, len(peers))
	for i := range peers {
		keys[i] = peers[i].Key
	}
	if err := l.ring.Set(keys...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peers = peers
	return nil
}

// note writes the last uses, if one is due that is later than the written one by at least every.
func (l *Live) note(every time.Duration) {
	l.mu.Lock()
	due := false
	for id, u := range l.uses {
		due = due || u.Time.Sub(l.noted[id]) >= every
	}
	uses, peers := l.uses, l.peers
	if due {
		l.uses = make(map[string]Use)
	}
	l.mu.Unlock()
	if !due {
		return
	}
	err := l.file.Note(uses, peers)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.stuck = false
		for id, u := range uses {
			l.noted[id] = u.Time
		}
		return
	}
	for id, u := range uses {
		if _, later := l.uses[id]; !later {
			l.uses[id] = u
		}
	}
	// Once, because a full disk stays full for a while; a lock does not last.
	if !l.stuck && !errors.Is(err, durable.ErrLocked) {
		l.stuck = true
		l.log(fmt.Sprintf("write the last use of the peers: %v", err))
	}
}

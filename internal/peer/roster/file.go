package roster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// format is the first member of the file. A change of the meaning of a member needs another.
	format = "linerate.serve-peers/1"
	// maxPeers bounds the file: every key costs two computations at the start of serve.
	maxPeers = 1000
	// maxFileBytes bounds what is parsed; a thousand peers with patterns take less.
	maxFileBytes = 1 << 20
	// maxNameBytes bounds a name, which appears in logs and tables.
	maxNameBytes = 64
	// lockPatience is how long an edit waits for another one.
	lockPatience = 10 * time.Second
	perm         = 0o600
)

// ErrDamaged reports a file that is not what linerate writes; the text says where.
var ErrDamaged = errors.New("damaged")

// Peer is one host that may connect with a key of its own.
type Peer struct {
	Name    string
	Key     wire.Key
	Tuning  *knob.Permission // what it may change; nil: it may only run tests
	Added   time.Time
	Expires time.Time // zero: when it is revoked
}

// Expired reports whether the key has ended.
func (p *Peer) Expired(now time.Time) bool { return !p.Expires.IsZero() && !now.Before(p.Expires) }

// entry is a Peer in the file.
type entry struct {
	Name    string     `json:"name"`
	Key     string     `json:"key"`
	Tuning  string     `json:"allow_tuning,omitempty"`
	Added   time.Time  `json:"added_time,omitzero"`
	Expires *time.Time `json:"expires_time,omitempty"`
}

type content struct {
	Format string  `json:"format"`
	Peers  []entry `json:"peers"`
}

// File is the file of the peers.
type File struct {
	FS   durable.FS
	Path string
}

// ValidName returns nil for a name that a peer may have: 1 to 64 letters, digits, dots, dashes and
// underscores, of ASCII, and not a dash first.
func ValidName(name string) error {
	valid := name != "" && len(name) <= maxNameBytes && name[0] != '-'
	for _, r := range name {
		valid = valid && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-", r))
	}
	if !valid {
		return fmt.Errorf("peer name %q: want 1 to %d letters, digits, '.', '_' and '-', and no '-' first", name,
			maxNameBytes)
	}
	return nil
}

// Read returns the peers in the order of the file. Errors: fs.ErrNotExist for a missing file,
// fs.ErrPermission for one that this user may not read or that other users may read or change,
// ErrDamaged for a wrong content.
func (f File) Read() ([]Peer, error) {
	data, err := f.readSafe(f.Path)
	if err != nil {
		return nil, err
	}
	peers, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Path, err)
	}
	return peers, nil
}

// readSafe reads a file that only its owner may read, and that other users cannot replace.
func (f File) readSafe(path string) ([]byte, error) {
	if disk, ok := f.FS.(durable.Truster); ok {
		if err := disk.Trusted(path); err != nil {
			return nil, fmt.Errorf("the file of the peers is not safe: %w", err)
		}
	}
	info, err := f.FS.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("the file of the peers is not safe: %w", &durable.TrustError{Path: path,
			Reason: fmt.Sprintf("other users may read the keys in it or change them (mode %04o)", mode)})
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("read %s: %w: more than %d bytes", path, ErrDamaged, maxFileBytes)
	}
	return f.FS.ReadFile(path)
}

// parse reads the content of a file.
func parse(data []byte) ([]Peer, error) {
	var c content
	if err := decode(data, &c); err != nil {
		return nil, err
	}
	if c.Format != format {
		return nil, fmt.Errorf("%w: its format is %q, this linerate reads %q", ErrDamaged, c.Format, format)
	}
	if len(c.Peers) > maxPeers {
		return nil, fmt.Errorf("%w: %d peers, more than %d", ErrDamaged, len(c.Peers), maxPeers)
	}
	peers := make([]Peer, len(c.Peers))
	for i := range peers {
		p := &peers[i]
		if err := c.Peers[i].fill(p); err != nil {
			return nil, err
		}
		for j := range i {
			switch o := &peers[j]; {
			case o.Name == p.Name:
				return nil, fmt.Errorf("%w: two peers have the name %q", ErrDamaged, p.Name)
			case o.Key == p.Key:
				return nil, fmt.Errorf("%w: %q and %q have the same key", ErrDamaged, o.Name, p.Name)
			}
		}
	}
	return peers, nil
}

// fill checks one entry and makes a peer of it.
func (e *entry) fill(p *Peer) error {
	p.Name, p.Added = e.Name, e.Added.UTC()
	if err := ValidName(e.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	var err error
	if p.Key, err = wire.ParseKey(e.Key); err != nil {
		// Not the text of the error alone: it quotes a part of the key, and this one goes into
		// logs.
		return fmt.Errorf("%w: the key of %q is not a key", ErrDamaged, e.Name)
	}
	if e.Tuning != "" {
		tuning, err := knob.ParsePermission(e.Tuning)
		if err != nil {
			return fmt.Errorf("%w: allow_tuning of %q: %w", ErrDamaged, e.Name, err)
		}
		p.Tuning = &tuning
	}
	if e.Expires != nil {
		p.Expires = e.Expires.UTC()
	}
	return nil
}

// decode reads one JSON value, and names the line of a mistake.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("more text follows the end")
	}
	at := d.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		at, err = int64(len(data)), errors.New("it ends too early")
	}
	line := 1 + bytes.Count(data[:min(max(at, 0), int64(len(data)))], []byte("\n"))
	return fmt.Errorf("%w in line %d: %s", ErrDamaged, line, strings.TrimPrefix(err.Error(), "json: "))
}

// Edit replaces the peers by what change returns for the present ones, under a lock that keeps
// other edits out. A missing file has no peers, and is created with its directory. The file on disk
// has the old content or the new one, whole, at any time.
func (f File) Edit(ctx context.Context, change func([]Peer) ([]Peer, error)) error {
	if err := durable.MkdirAll(f.FS, filepath.Dir(f.Path), 0o700); err != nil {
		return fmt.Errorf("make the directory of the peers: %w", err)
	}
	if disk, ok := f.FS.(durable.Truster); ok {
		if err := disk.Trusted(filepath.Dir(f.Path)); err != nil {
			return fmt.Errorf("the directory of the peers is not safe: %w", err)
		}
	}
	lock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close() // nothing was written through it
	peers, err := f.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if peers, err = change(peers); err != nil {
		return err
	}
	data, err := encode(peers)
	if err != nil {
		return err
	}
	if _, err := parse(data); err != nil { // what serve would refuse is not written
		return err
	}
	return durable.Replace(f.FS, f.Path, data, perm)
}

// lock waits for the lock of both files.
func (f File) lock(ctx context.Context) (io.Closer, error) {
	for end := time.Now().Add(lockPatience); ; {
		lock, err := f.FS.Lock(f.Path + ".lock")
		if err == nil || !errors.Is(err, durable.ErrLocked) || time.Now().After(end) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock of %s: %w", f.Path, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func encode(peers []Peer) ([]byte, error) {
	c := content{Format: format, Peers: make([]entry, len(peers))}
	for i := range peers {
		p, e := &peers[i], &c.Peers[i]
		e.Name, e.Key, e.Added = p.Name, p.Key.String(), p.Added
		if p.Tuning != nil {
			e.Tuning = p.Tuning.String()
		}
		if !p.Expires.IsZero() {
			e.Expires = &p.Expires
		}
	}
	return indented(c)
}

// indented returns JSON for a file that people read.
func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return append(data, '\n'), nil
}

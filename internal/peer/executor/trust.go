package executor

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

// DefaultHome is where the node keeps the membership of this host.
const DefaultHome = "/var/lib/linerate-node"

const maxMembership = 64 << 10

// MemberID returns the id of this host in its fleet, as the node at home says, in the spelling of
// orders. It is a claim of a process without rights: a person who trusts a key compares it with
// what the hub shows. A missing membership is fs.ErrNotExist.
func MemberID(fsys durable.FS, home string) (string, error) {
	name := filepath.Join(home, "membership.json")
	info, err := fsys.Stat(name)
	if err != nil {
		return "", fmt.Errorf("read the membership of this host: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxMembership {
		return "", fmt.Errorf("read the membership of this host: %s: want a file of at most %d bytes", name, maxMembership)
	}
	b, err := fsys.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read the membership of this host: %w", err)
	}
	var m struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return "", fmt.Errorf("read the membership of this host: %s: %w", name, err)
	}
	id := strings.ToLower(m.ID)
	if !order.ValidName(id) {
		return "", fmt.Errorf("read the membership of this host: %w: the hub has not admitted it yet", fs.ErrNotExist)
	}
	return id, nil
}

// ErrOther reports that a file holds something else already.
var ErrOther = errors.New("differs from what is there")

// Trust makes this host take orders for the id that this key signs. It returns the files that it
// has written. Another id or another key of the same name is an ErrOther, unless replace is set.
func (f Files) Trust(id, name string, key ed25519.PublicKey, replace bool) (written []string, err error) {
	if !order.ValidName(id) || !order.ValidName(name) {
		return nil, fmt.Errorf("trust %.70q for host %.70q: want 1 to 64 of a-z, 0-9, '.', '_', '-'", name, id)
	}
	old, err := f.Host()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && old != id && !replace {
		return nil, fmt.Errorf("trust %s: %w: this host takes orders for %s, not for %s", name, ErrOther, old, id)
	}
	keys, err := f.Keys()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	other, known := keys[name]
	if known && !bytes.Equal(other, key) && !replace {
		return nil, fmt.Errorf("trust %s: %w: the key of %s is %s", name, ErrOther, name, order.Fingerprint(other))
	}
	if err := durable.MkdirAll(f.FS, f.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("trust %s: %w", name, err)
	}
	// The key comes last: without its id the host takes no order.
	if old != id {
		path := filepath.Join(f.Dir, hostName)
		if err := durable.Replace(f.FS, path, []byte(id+"\n"), 0o644); err != nil {
			return written, fmt.Errorf("trust %s: %w", name, err)
		}
		written = append(written, path)
	}
	if known && bytes.Equal(other, key) {
		return written, nil
	}
	path, err := f.rewriteKeys(name, name+" "+base64.StdEncoding.EncodeToString(key)+"\n")
	if err != nil {
		return written, fmt.Errorf("trust %s: %w", name, err)
	}
	return append(written, path), nil
}

// Distrust makes this host refuse what the key of this name signs. A name without a key is
// fs.ErrNotExist.
func (f Files) Distrust(name string) (written []string, err error) {
	keys, err := f.Keys()
	if err != nil {
		return nil, err
	}
	if _, known := keys[name]; !known {
		return nil, fmt.Errorf("distrust %.70q: no key of this name: %w", name, fs.ErrNotExist)
	}
	path, err := f.rewriteKeys(name, "")
	if err != nil {
		return nil, fmt.Errorf("distrust %s: %w", name, err)
	}
	return []string{path}, nil
}

// rewriteKeys replaces the line of a name, and keeps all others.
func (f Files) rewriteKeys(name, line string) (string, error) {
	path := filepath.Join(f.Dir, keysName)
	data, err := f.FS.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	var kept strings.Builder
	for text := range strings.Lines(string(data)) {
		if !strings.HasPrefix(text, name+" ") {
			kept.WriteString(strings.TrimSuffix(text, "\n") + "\n")
		}
	}
	kept.WriteString(line)
	if _, err := order.ParseKeys([]byte(kept.String())); err != nil {
		return path, err // one key under two names counts as two people
	}
	return path, durable.Replace(f.FS, path, []byte(kept.String()), 0o644)
}

// Allow writes a policy that lets the fleet change some knobs, where there is none. One that is
// there is an ErrOther: its author edits it.
func (f Files) Allow(patterns []string) (string, error) {
	path := filepath.Join(f.Dir, policyName)
	if _, err := f.FS.Stat(path); err == nil {
		return path, fmt.Errorf("allow %s: %s %w", strings.Join(patterns, " "), path, ErrOther)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	text := "version: 1\nchanges:\n  allow:\n"
	for _, p := range patterns {
		p = knob.WithKind(p)
		if strings.ContainsAny(p, "\"\\\n\r\t") {
			return path, fmt.Errorf("allow %.70q: not a pattern of knobs", p)
		}
		text += "    - \"" + string(knob.ID(p)) + "\"\n"
	}
	if _, err := policy.Parse([]byte(text)); err != nil {
		return path, fmt.Errorf("allow %s: %w", strings.Join(patterns, " "), err)
	}
	return path, durable.Replace(f.FS, path, []byte(text), 0o644)
}

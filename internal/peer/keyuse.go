package peer

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// The errors of a client whose key is right and not valid for it. Each is an fs.ErrPermission.
var (
	// ErrKeyExpired: serve has run for longer than its key lives.
	ErrKeyExpired error = keyRefusal{"the key has expired", "start serve there again: it makes and prints a new key"}
	// ErrKeyBound: other hosts have used the key first.
	ErrKeyBound error = keyRefusal{"the key belongs to another host, which used it first",
		"if no host of yours did, the key has leaked: start serve there again for a new one; " +
			"serve --key-clients lets more hosts use one key"}
)

type keyRefusal struct{ text, hint string }

func (e keyRefusal) Error() string        { return e.text }
func (e keyRefusal) Hint() string         { return e.hint }
func (e keyRefusal) Is(target error) bool { return target == fs.ErrPermission }

// keyUse decides whether a client that has proved the key may still use it. A client is known by
// its source address, so every program of one host is the same client.
type keyUse struct {
	until time.Duration // on Boottime, so that a suspended host does not lengthen it; 0: no end
	hosts int           // that may use the key; 0: any number
	now   func() time.Duration

	mu    sync.Mutex
	bound []string // addresses, in the order in which they came
}

func newKeyUse(expires time.Duration, hosts int) *keyUse {
	u := &keyUse{hosts: hosts, now: sys.Boottime}
	if expires > 0 {
		u.until = u.now() + expires
	}
	return u
}

// allow binds the key to a client, or refuses the client. A channel without an address (ssh) has no
// key.
func (u *keyUse) allow(ip string) error {
	if u.until > 0 && u.now() >= u.until {
		return ErrKeyExpired
	}
	if u.hosts == 0 || ip == "" {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case slices.Contains(u.bound, ip):
		return nil
	case len(u.bound) >= u.hosts:
		return ErrKeyBound
	}
	u.bound = append(u.bound, ip)
	return nil
}

// holders returns the addresses that the key is bound to, for this host's log.
func (u *keyUse) holders() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.bound, ", ")
}

// watchKey closes every client when the key expires, until the returned function is called.
func (s *server) watchKey() (end func()) {
	if s.KeyExpires <= 0 {
		return func() {}
	}
	timer := time.AfterFunc(s.KeyExpires, func() {
		s.Log(fmt.Sprintf("the key has expired after %s: start serve again for a new one", s.KeyExpires))
		for _, c := range s.clientsOpen() {
			go c.goodbye(fmt.Sprintf("%s closes the connection: its key has expired", s.HostName))
		}
		s.expireOnce()
	})
	return func() { timer.Stop() }
}

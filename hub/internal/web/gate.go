package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Bounds of a gate.
const (
	sessionLife  = 7 * 24 * time.Hour // without a request
	renewAfter   = time.Hour          // a browser forgets a cookie sessionLife after it got it
	maxSessions  = 1024
	maxAddresses = 4096
	freeFailures = 4 // people mistype
	longestWait  = time.Minute
	forgetAfter  = 15 * time.Minute
	maxHashing   = 8 // requests that wait while one password is hashed
)

// gate knows the password, the sessions, and the addresses with wrong passwords.
type gate struct {
	hash hash
	now  func() time.Time
	// seal keys the hashes of tokens and passwords in memory, so that a later reader of this memory
	// cannot use them. Each start makes a new one.
	seal    [32]byte
	hashing chan struct{}

	mu       sync.Mutex
	waiting  int
	sessions map[[32]byte]session // by sealed token
	known    [32]byte             // the sealed password, once it was right: programs send it with each request
	knows    bool
	failed   map[netip.Prefix]*failures
}

type session struct {
	last    time.Time // request
	renewed time.Time // its cookie
}

type failures struct {
	count int
	until time.Time // no password is checked before
	last  time.Time
}

func newGate(h hash, now func() time.Time) *gate {
	g := &gate{hash: h, now: now, hashing: make(chan struct{}, 1), sessions: make(map[[32]byte]session),
		failed: make(map[netip.Prefix]*failures)}
	_, _ = rand.Read(g.seal[:]) // never fails: see crypto/rand
	return g
}

func (g *gate) sealed(secret string) (out [32]byte) {
	m := hmac.New(sha256.New, g.seal[:])
	m.Write([]byte(secret))
	m.Sum(out[:0])
	return out
}

// verdict is the result of a password check.
type verdict int

const (
	right verdict = iota
	wrong
	later // this address must wait, or too many wait already
)

// try checks a password that came from an address. The duration is the time to wait after the
// verdict later.
func (g *gate) try(ctx context.Context, from netip.Prefix, password string) (verdict, time.Duration) {
	seal := g.sealed(password)
	g.mu.Lock()
	now := g.now()
	// The right password passes even while other clients guess from the same address.
	if g.knows && subtle.ConstantTimeCompare(seal[:], g.known[:]) == 1 {
		g.mu.Unlock()
		return right, 0
	}
	if f := g.failed[from]; f != nil && now.Before(f.until) {
		wait := f.until.Sub(now)
		g.mu.Unlock()
		return later, wait
	}
	if g.waiting >= maxHashing {
		g.mu.Unlock()
		return later, time.Second
	}
	g.waiting++
	g.mu.Unlock()

	// One at a time: guesses from many addresses take at most one CPU.
	ok := false
	select {
	case g.hashing <- struct{}{}:
		ok = g.hash.is(password)
		<-g.hashing
	case <-ctx.Done():
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
	if ctx.Err() != nil && !ok {
		return later, time.Second
	}
	if ok {
		g.known, g.knows = seal, true
		delete(g.failed, from)
		return right, 0
	}
	g.fail(from)
	return wrong, 0
}

// fail counts a wrong password: from the fifth on, each doubles the wait.
func (g *gate) fail(from netip.Prefix) {
	now := g.now()
	f := g.failed[from]
	if f == nil || now.Sub(f.last) > forgetAfter {
		if f == nil && len(g.failed) >= maxAddresses {
			g.forget(now)
		}
		f = &failures{}
		g.failed[from] = f
	}
	f.count++
	f.last = now
	if extra := f.count - freeFailures; extra > 0 {
		f.until = now.Add(min(longestWait, time.Second<<min(extra-1, 6)))
	}
}

// forget makes room: it deletes old entries, or the oldest one if none is old.
func (g *gate) forget(now time.Time) {
	var oldest netip.Prefix
	var at time.Time
	for from, f := range g.failed {
		if now.Sub(f.last) > forgetAfter {
			delete(g.failed, from)
		} else if at.IsZero() || f.last.Before(at) {
			oldest, at = from, f.last
		}
	}
	if len(g.failed) >= maxAddresses {
		delete(g.failed, oldest)
	}
}

// begin opens a session and returns its token.
func (g *gate) begin() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	token := base64.RawURLEncoding.EncodeToString(b)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if len(g.sessions) >= maxSessions {
		var oldest [32]byte
		var at time.Time
		for s, is := range g.sessions {
			if at.IsZero() || is.last.Before(at) {
				oldest, at = s, is.last
			}
		}
		delete(g.sessions, oldest)
	}
	g.sessions[g.sealed(token)] = session{last: now, renewed: now}
	return token
}

// has reports whether a token belongs to a session, and keeps the session alive. renew is set when
// the browser should get the cookie again, so that it keeps a session in use. The map has the
// sealed token as its key, so the timing of the lookup reveals nothing.
func (g *gate) has(token string) (ok, renew bool) {
	s := g.sealed(token)
	g.mu.Lock()
	defer g.mu.Unlock()
	is, ok := g.sessions[s]
	if !ok {
		return false, false
	}
	now := g.now()
	if now.Sub(is.last) > sessionLife {
		delete(g.sessions, s)
		return false, false
	}
	is.last = now
	if now.Sub(is.renewed) >= renewAfter {
		is.renewed, renew = now, true
	}
	g.sessions[s] = is
	return true, renew
}

func (g *gate) end(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, g.sealed(token))
}

// origin returns the address that failures count for: one IPv4 address, or the /48 of an IPv6
// address: a host can choose from a /64, and a site has a /48 (RFC 6177).
func origin(r *http.Request) netip.Prefix {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	return prefixOf(ip)
}

// prefixOf returns what counts as one source.
func prefixOf(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 48
	}
	p, _ := ip.Prefix(bits)
	return p
}

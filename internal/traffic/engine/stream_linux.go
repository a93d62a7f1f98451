package engine

import (
	"fmt"
	"sync"

	"github.com/linerate/linerate/internal/kernel/sys"
)

const (
	// pipeBytes is the most that an unprivileged user may put into one pipe (fs.pipe-max-size). A
	// user may have 64 MiB in pipes altogether (fs.pipe-user-pages-soft); beyond that a pipe gets
	// smallPipeBytes, or the method is unavailable.
	pipeBytes      = 1 << 20
	smallPipeBytes = 128 << 10
	truncateBytes  = 1 << 20 // nothing is copied, so only what has arrived bounds the call
)

// newSource makes the source of a method and returns the size of its calls.
func newSource(m SendMethod, conn *Conn) (source, int, error) {
	switch m {
	case SendSendfile:
		file, err := patternFile.open()
		if err != nil {
			return nil, 0, err
		}
		return &fileSource{conn: conn, file: file}, sendBytes, nil
	case SendSplice:
		call := sendBytes
		read, write, err := sys.OpenPipe(pipeBytes)
		if err != nil {
			call = smallPipeBytes
			read, write, err = sys.OpenPipe(smallPipeBytes)
		}
		if err != nil {
			return nil, 0, err
		}
		return &pipeSource{conn: conn, ring: ring(), read: read, write: write}, call, nil
	}
	return &copySource{conn: conn, ring: sys.NewRing(ring()[:patternPeriod], max(copySendBytes, maxCallBytes))},
		copySendBytes, nil
}

// copySource is sendmsg(2) from memory.
type copySource struct {
	conn *Conn
	ring *sys.Ring
	now  bool // never sleep, see linger
}

func (s *copySource) send(at, n int) (int, error) {
	wait := sys.WaitTold
	switch {
	case s.now:
		wait = sys.WaitNone
	case scheduler.keep.Load():
		wait = sys.WaitKept
	}
	return s.ring.Write(s.conn.fd, at, n, wait)
}

func (s *copySource) linger(on bool) { s.now = !on }
func (s *copySource) close()         {}

// patternFile is the payload as a file in memory. One is enough for all senders of this process:
// each reads it at its own offset.
var patternFile sharedFile

type sharedFile struct {
	mu    sync.Mutex
	fd    int
	users int
}

func (f *sharedFile) open() (fd int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == 0 {
		if f.fd, err = sys.CreateMemoryFile("linerate payload", ring()); err != nil {
			return -1, err
		}
	}
	f.users++
	return f.fd, nil
}

func (f *sharedFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users == 0 {
		_ = sys.Close(f.fd) // a file in memory has nothing left to write
	}
}

// fileSource is sendfile(2).
type fileSource struct {
	conn *Conn
	file int
	once sync.Once
}

func (s *fileSource) send(at, n int) (int, error) {
	return sys.SendFile(s.conn.fd, s.file, int64(at), n)
}

func (s *fileSource) close() { s.once.Do(patternFile.close) }

// pipeSource is vmsplice(2) and splice(2).
type pipeSource struct {
	conn        *Conn
	ring        []byte
	read, write int
	queued      int // bytes that are in the pipe
	once        sync.Once
}

func (s *pipeSource) send(at, n int) (int, error) {
	if s.queued == 0 {
		queued, err := sys.SpliceMemory(s.write, s.ring[at:at+n])
		if err != nil {
			return 0, fmt.Errorf("fill pipe: %w", err)
		}
		s.queued = queued
	}
	// What is queued goes first, even if the caller asks for more: it is the next piece of the
	// stream.
	splice := sys.Splice
	if scheduler.keep.Load() {
		splice = sys.SpliceKept
	}
	sent, err := splice(s.read, s.conn.fd, min(n, s.queued))
	s.queued -= sent
	return sent, err
}

func (s *pipeSource) close() {
	s.once.Do(func() {
		_, _ = sys.Close(s.read), sys.Close(s.write) // nothing waits at either end
	})
}

//go:build !linux

package engine

// truncateBytes is never used: this system has no truncating receive.
const truncateBytes = copyBytes

// copySource is write(2).
type copySource struct {
	conn *Conn
	ring []byte
}

func (s *copySource) send(at, n int) (int, error) { return s.conn.write(s.ring[at : at+n]) }
func (s *copySource) close()                      {}

// newSource makes the only source of this system.
func newSource(_ SendMethod, conn *Conn) (source, int, error) {
	return &copySource{conn: conn, ring: ring()}, sendBytes, nil
}

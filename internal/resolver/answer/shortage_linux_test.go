package answer

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/resolver/message"
)

// TestServesAfterAShortage uses up the descriptors while the server runs: it answered no connection
// afterwards.
func TestServesAfterAShortage(t *testing.T) {
	if !testenv.Alone(t) {
		return
	}
	s, err := Start(Options{Listen: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	conn, feed := testenv.Starve(t, func() (net.Conn, error) { return net.Dial("tcp", s.Addr().String()) })
	defer conn.Close()
	feed()
	name, err := message.AppendName(nil, "a.example.")
	if err != nil {
		t.Fatal(err)
	}
	query := append(make([]byte, message.HeaderBytes), name...)
	query[5] = 1 // questions
	query = append(query, 0, byte(message.TypeA), 0, 1)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		t.Fatal(err)
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		t.Errorf("no answer: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

package nl

import (
	"errors"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
)

// torn answers dumps: the first ones with a mark that the table changed meanwhile, or with an
// error, and then with two entries.
func torn(t *testing.T, bad int, failing error) (conn *netlink.Conn, calls *int) {
	calls = new(int)
	conn = nltest.Dial(func(requests []netlink.Message) ([]netlink.Message, error) {
		*calls++
		entry := netlink.Message{Header: netlink.Header{Type: 20, Sequence: requests[0].Header.Sequence,
			PID: requests[0].Header.PID}, Data: []byte{3, 1, 0, 0}}
		second := entry
		if *calls <= bad {
			if failing != nil {
				return nil, failing
			}
			second.Header.Flags = netlink.DumpInterrupted
		}
		return nltest.Multipart([]netlink.Message{entry, second, {Header: netlink.Header{
			Sequence: requests[0].Header.Sequence, PID: requests[0].Header.PID}}})
	})
	t.Cleanup(func() { _ = conn.Close() })
	return conn, calls
}

// TestTornDumps: both kinds of dumps are read again while their table changes.
func TestTornDumps(t *testing.T) {
	kinds := map[string]func(c *netlink.Conn) (int, error){
		"rtnetlink": func(c *netlink.Conn) (int, error) {
			msgs, err := (&Client{k: &kernel{route: c}}).Dump(18, nil)
			return len(msgs), err
		},
		"generic": func(c *netlink.Conn) (int, error) {
			msgs, err := (&Client{k: &kernel{generic: c}}).Generic(20, 3, netlink.Request|netlink.Dump, nil)
			for _, m := range msgs {
				if m.Header.Command != 3 || m.Header.Version != 1 {
					t.Errorf("message %+v", m)
				}
			}
			return len(msgs), err
		},
	}
	for name, read := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, failing := range []error{nil, syscall.EINTR, syscall.EAGAIN} {
				conn, calls := torn(t, 2, failing)
				if n, err := read(conn); n != 2 || err != nil || *calls != 3 {
					t.Errorf("%v twice: %d entries, %v, %d dumps", failing, n, err, *calls)
				}
			}
			conn, calls := torn(t, 1000, nil)
			if n, err := read(conn); err == nil || *calls != dumpAttempts {
				t.Errorf("always torn: %d entries, %v, %d dumps", n, err, *calls)
			}
			conn, calls = torn(t, 1000, syscall.EPERM)
			if _, err := read(conn); !errors.Is(err, syscall.EPERM) || *calls != 1 {
				t.Errorf("not permitted: %v, %d dumps", err, *calls)
			}
		})
	}
}

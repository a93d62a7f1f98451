package watch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
)

// TestDestinations makes connections to one destination, in a namespace of its own where no other
// program connects. The client closes some of them first.
func TestDestinations(t *testing.T) {
	inNetNS(t, func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		const open, closed = 3, 2
		for i := range open + closed {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			served, err := l.Accept()
			if err != nil {
				return err
			}
			if i < open {
				defer served.Close()
				defer c.Close()
				continue
			}
			err = c.Close()
			_, readErr := io.Copy(io.Discard, served) // until the client's end has come
			if err := errors.Join(err, readErr, served.Close()); err != nil {
				return err
			}
		}
		// The gauge says that ports are short; which are looked at is what the range says.
		values := map[string]uint64{"sockets.port_first": 1024, "sockets.port_last": 65535, "sockets.tcp_tw": 60000}
		remote := netip.MustParseAddrPort(l.Addr().String())
		want := Destination{Local: remote.Addr(), Remote: remote, Ports: open + closed, Waiting: closed}
		// The ends that were accepted have the port of the listener, which is of the range here,
		// towards a destination each.
		var found []Destination
		err = eventually("the clients never reach TIME-WAIT", func() (bool, error) {
			found, err = destinations(values)
			return len(found) > 0 && found[0].Waiting == closed, err
		})
		if err != nil || found[0] != want {
			return fmt.Errorf("%+v, %w, want %+v first", found, err, want)
		}
		values["sockets.tcp_tw"] = 20000
		if found, err := destinations(values); found != nil || err != nil {
			return fmt.Errorf("counted where there are plenty: %+v, %w", found, err)
		}
		if found, err := destinations(nil); found != nil || err != nil {
			return fmt.Errorf("without a range: %+v, %w", found, err)
		}
		return nil
	})
}

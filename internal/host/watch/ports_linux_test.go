package watch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
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
		// Reserved ports leave room for fewer than twice the connections, and a listed port that a
		// program asked for takes none of them.
		asked, err := net.DialTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1030}, l.Addr().(*net.TCPAddr))
		if err != nil {
			return err
		}
		defer asked.Close()
		err = os.WriteFile("/proc/sys/net/ipv4/ip_local_reserved_ports", []byte("1024-26000"), 0)
		if err != nil {
			return err
		}
		if found, err := destinations(values); err != nil || len(found) == 0 || found[0] != want {
			return fmt.Errorf("beside reserved ports: %+v, %w, want %+v first", found, err, want)
		}
		return nil
	})
}

func TestPorts(t *testing.T) {
	for _, c := range []struct {
		list        string
		first, last uint64
		want        uint64
	}{
		{"", 32768, 60999, 0},
		{"8080,9148-9150\n", 1024, 65535, 4},
		{"8080,9148-9150", 9149, 65535, 2},
		{"32768-60999", 32768, 60999, 28232},
		{"1-65535", 32768, 60999, 28232},
		{"1-32767,61000-65535", 32768, 60999, 0},
		{"-5,7-6,x,70000", 1, 65535, 0},
	} {
		if got := ParsePorts(c.list).Within(c.first, c.last); got != c.want {
			t.Errorf("%q has %d ports from %d to %d, want %d", c.list, got, c.first, c.last, c.want)
		}
	}
}

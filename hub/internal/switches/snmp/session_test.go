package snmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/hub/internal/switches/switchtest"
	"github.com/linerate/linerate/internal/base/testenv"
)

func open(t *testing.T, address, community string, timeout time.Duration) *Session {
	t.Helper()
	s, err := Open(Options{Address: address, Credentials: Credentials{Community: community}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestFaultyAgents reads a switch with 48 ports over UDP from agents that lose, cut, repeat, delay
// and spoil answers.
func TestFaultyAgents(t *testing.T) {
	for name, c := range map[string]struct {
		most  int // bytes of an answer
		fault switchtest.Fault
	}{
		"sound":                        {65000, switchtest.Lost(1 << 30)},
		"answers of 484 bytes":         {484, switchtest.Lost(1 << 30)},
		"an answer in 15 is lost":      {1472, switchtest.Lost(15)},
		"slow":                         {1472, switchtest.Slow(2 * time.Millisecond)},
		"each answer twice":            {1472, func(_ int, _, a []byte) [][]byte { return [][]byte{a, a} }},
		"an old answer before the new": {1472, older()},
		"noise before each answer": {1472, func(n int, _, a []byte) [][]byte {
			if n%5 > 0 {
				return [][]byte{a}
			}
			return [][]byte{[]byte("\x30\x82\xff\xff\x02\x01\x01"), a}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := switchtest.Switch(48, true)
			patience := time.Minute
			if strings.Contains(name, "lost") {
				patience = 2 * time.Second // what each lost answer costs
			}
			tree.Set(switchtest.InHC+"48", uint64(1)<<40)
			s := open(t, switchtest.Serve(t, tree, "secret", c.most, c.fault), "secret", patience)
			got, err := mib.Read(t.Context(), s, mib.Options{Neighbours: true})
			if err != nil {
				t.Fatal(err)
			}
			last := got.Ports[len(got.Ports)-1]
			if len(got.Ports) != 48 || len(got.Warnings) > 0 || last.Counters[mib.InBytes].Value != 1<<40 ||
				last.Alias != "uplink" ||
				len(got.Ports[0].Neighbours) != 1 {
				t.Errorf("%d ports, %q, the last %+v", len(got.Ports), got.Warnings, last)
			}
			t.Logf("%d requests, %v", s.Requests(), got.Took)
		})
	}
}

// older sends the answer to the request before, with its id, in front of each answer.
func older() switchtest.Fault {
	var before []byte
	return func(_ int, _, a []byte) [][]byte {
		out := [][]byte{a}
		if before != nil {
			out = [][]byte{before, a}
		}
		before = a
		return out
	}
}

// TestSilentAgents names what may be wrong, within the time that the caller gives.
func TestSilentAgents(t *testing.T) {
	tree := switchtest.Switch(2, true)
	never := switchtest.Serve(t, tree, "secret", 65000, func(int, []byte, []byte) [][]byte { return nil })
	right := switchtest.Serve(t, tree, "secret", 65000)
	unused := fmt.Sprint("127.0.0.1:", testenv.FreePorts(t, 1))
	const silent = 20 * time.Millisecond // what silence costs; a closed port says so
	for name, c := range map[string]struct {
		address, community string
		timeout            time.Duration
		says               string
	}{
		"never":           {never, "secret", silent, "wrong community"},
		"wrong community": {right, "public", silent, "wrong community"},
		"no agent":        {unused, "secret", time.Minute, "no SNMP agent listens"},
	} {
		s := open(t, c.address, c.community, time.Minute)
		s.snmp.Timeout = c.timeout // of requests alone: a pause could make opening the socket take as long
		_, err := mib.Read(t.Context(), s, mib.Options{})
		if !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := open(t, never, "secret", time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := mib.Read(ctx, s, mib.Options{}); !errors.Is(err, ErrSilent) {
		t.Errorf("a caller without time: %v", err)
	}
}

// TestAddresses splits addresses.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{"192.0.2.1": "192.0.2.1 161", "sw:1161": "sw 1161",
		"[2001:db8::1]:7": "2001:db8::1 7",
		"2001:db8::1":     "2001:db8::1 161", "[2001:db8::1]": "2001:db8::1 161"} {
		host, port, err := Split(address)
		if got := host + " " + itoa(port); err != nil || got != want {
			t.Errorf("%s: %s, %v", address, got, err)
		}
	}
	for _, address := range []string{"", "sw:0", "sw:99999", "udp://sw", "a b", ":161", "user@sw"} {
		if _, _, err := Split(address); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
}

func itoa(n uint16) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append([]byte{byte('0' + n%10)}, b...)
	}
	return string(b)
}

// said is a connection whose other end says one thing.
type said struct {
	net.Conn
	packets [][]byte
}

func (s *said) Write(b []byte) (int, error) { return len(b), nil }
func (s *said) Read(b []byte) (int, error) {
	if len(s.packets) == 0 {
		return 0, timedOut{}
	}
	n := copy(b, s.packets[0])
	s.packets = s.packets[1:]
	return n, nil
}
func (*said) SetDeadline(time.Time) error { return nil }
func (*said) Close() error                { return nil }

type timedOut struct{}

func (timedOut) Error() string   { return "i/o timeout" }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }

// FuzzAnswer gives a session bytes instead of an answer, of both versions: it returns bindings or
// one sentence.
func FuzzAnswer(f *testing.F) {
	reply := &gosnmp.SnmpPacket{Version: gosnmp.Version2c, Community: "c", PDUType: gosnmp.GetResponse,
		Variables: []gosnmp.SnmpPDU{{Name: ".1.3.6.1.2.1.2.2.1.2.1", Type: gosnmp.OctetString, Value: []byte("\x1b[2J")},
			{Name: ".1.3.6.1.2.1.31.1.1.1.6.1", Type: gosnmp.Counter64, Value: uint64(1 << 63)}}}
	b, err := reply.MarshalMsg()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, false)
	f.Add(b[:len(b)/2], false)
	f.Add([]byte("\x30\x3e\x02\x01\x03\x30\x11\x02\x04\x00\x00\x00\x00\x02\x03\x00\xff\xe3\x04\x01\x04\x02\x01\x03"), true)
	f.Fuzz(func(t *testing.T, b []byte, three bool) {
		c := Credentials{Community: "c"}
		if three {
			c = Credentials{User: "u", Auth: "md5", AuthKey: "12345678", Privacy: "des", PrivacyKey: "12345678"}
		}
		s, err := Open(Options{Address: "127.0.0.1:9", Credentials: c})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.snmp.Conn.Close()
		s.snmp.Conn = &said{packets: [][]byte{b, b, b, b}}
		got, err := s.Bulk(t.Context(), []mib.OID{{1, 3, 6}}, 10)
		if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 600) {
			t.Fatalf("%q", err)
		}
		for _, b := range got {
			if text, ok := b.Value.([]byte); ok && len(text) > mostText || len(b.OID) > 128 {
				t.Fatalf("%v", b)
			}
		}
	})
}

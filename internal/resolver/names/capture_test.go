package names_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// asked reads a capture and returns its questions as text.
func asked(t *testing.T, capture []byte) (all []string, err error) {
	t.Helper()
	s, err := names.Read(bytes.NewReader(capture), message.QueryOptions{})
	if err != nil {
		return nil, err
	}
	for i := range uint32(s.Len()) {
		q := ask(t, s, i, 0)
		all = append(all, message.NameText(q.Name)+" "+q.Type.String())
	}
	return all, nil
}

// pcapng puts the packets of a pcap of little-endian order into blocks of the newer format.
func pcapng(pcap []byte, order binary.AppendByteOrder, simple bool) (out []byte) {
	block := func(kind uint32, body []byte) {
		body = append(body, make([]byte, -len(body)&3)...)
		out = order.AppendUint32(out, kind)
		out = order.AppendUint32(out, uint32(len(body)+12))
		out = append(out, body...)
		out = order.AppendUint32(out, uint32(len(body)+12))
	}
	block(0x0a0d0d0a, order.AppendUint64(order.AppendUint32(order.AppendUint32(nil, 0x1a2b3c4d), 1), ^uint64(0)))
	block(1, order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, binary.LittleEndian.Uint16(pcap[20:])), 0), 0))
	block(5, make([]byte, 12)) // statistics
	for rest := pcap[24:]; len(rest) > 0; {
		n := binary.LittleEndian.Uint32(rest[8:])
		if simple {
			block(3, append(order.AppendUint32(nil, n), rest[16:16+n]...))
		} else {
			body := make([]byte, 12)
			body = order.AppendUint32(order.AppendUint32(body, n), n)
			block(6, append(body, rest[16:16+n]...))
		}
		rest = rest[16+n:]
	}
	return out
}

// TestReadCapture reads what tcpdump captured on loopback and on all interfaces: two queries, an
// answer, something else to port 53, and a query to another port. testdata/README.md says how.
func TestReadCapture(t *testing.T) {
	want := []string{"www.example.org. AAAA", "mail.example.org. MX"}
	for _, name := range []string{"lo.pcap", "any.pcap"} {
		pcap, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for form, capture := range map[string][]byte{
			"as it is": pcap, "cut off": append(slices.Clip(pcap), pcap[24:60]...),
			"pcapng": pcapng(pcap, binary.LittleEndian, false), "big-endian": pcapng(pcap, binary.BigEndian, false),
			"simple": pcapng(pcap, binary.BigEndian, true), "two sections": append(pcapng(pcap[:24], binary.BigEndian, true),
				pcapng(pcap, binary.LittleEndian, false)...),
		} {
			got, err := asked(t, capture)
			if err != nil {
				t.Errorf("%s %s: %v", name, form, err)
			} else if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("%s %s has %q, want %q", name, form, got, want)
			}
		}
		if _, err := asked(t, pcap[:24]); err == nil || !strings.Contains(err.Error(), "no query to UDP port 53") {
			t.Errorf("%s without packets: %v", name, err)
		}
	}
}

// FuzzCapture holds that no capture is more than an error, and that its questions can be asked.
func FuzzCapture(f *testing.F) {
	pcap, err := os.ReadFile("testdata/lo.pcap")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pcap)
	f.Add(pcapng(pcap, binary.BigEndian, false))
	f.Add(pcapng(pcap, binary.LittleEndian, true))
	f.Fuzz(func(t *testing.T, capture []byte) {
		if len(capture) > 0 && strings.IndexByte("\xd4\x4d\xa1\x0a", capture[0]) >= 0 {
			_, _ = asked(t, capture) // the queries that it composes are checked
		}
	})
}

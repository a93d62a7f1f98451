package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// answered returns struct inet_diag_msg with attributes.
func answered(family byte, state State, local, remote netip.AddrPort, attributes ...[]byte) []byte {
	b := make([]byte, sizeMessage)
	b[0], b[1] = family, byte(state)
	binary.BigEndian.PutUint16(b[4:], local.Port())
	binary.BigEndian.PutUint16(b[6:], remote.Port())
	copy(b[8:], local.Addr().AsSlice())
	copy(b[24:], remote.Addr().AsSlice())
	binary.NativeEndian.PutUint32(b[44:], 7)
	binary.NativeEndian.PutUint32(b[48:], 1)
	binary.NativeEndian.PutUint32(b[56:], 3)
	binary.NativeEndian.PutUint32(b[60:], 4096)
	binary.NativeEndian.PutUint32(b[68:], 51966)
	for _, a := range attributes {
		b = append(b, a...)
	}
	return b
}

func attribute(kind uint16, value []byte) []byte {
	b := make([]byte, 4)
	binary.NativeEndian.PutUint16(b, uint16(4+len(value)))
	binary.NativeEndian.PutUint16(b[2:], kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func numbers(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func TestDecode(t *testing.T) {
	four, six := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("[2001:db8::1]:443")
	mapped := netip.MustParseAddrPort("[::ffff:198.51.100.9]:5000")
	none := netip.AddrPort{}
	info := make([]byte, 104)
	info[0] = 1
	compare := cmp.Options{cmpopts.EquateComparable(netip.AddrPort{})}
	for _, c := range []struct {
		name string
		in   []byte
		want Socket
	}{
		{"a listener without a peer", answered(familyIPv4, Listen, four, none),
			Socket{Cookie: 1<<32 | 7, State: Listen, Local: four, ReceiveQueue: 3, SendQueue: 4096, Inode: 51966}},
		{"a connection with all attributes", answered(familyIPv6, Established, six, mapped,
			attribute(attrInfo, info), attribute(attrCongestion, []byte("bbr\x00")),
			attribute(attrMemory, numbers(1, 2, 3, 4, 5, 6, 7, 8, 9)), attribute(99, nil)),
			Socket{Cookie: 1<<32 | 7, State: Established, Local: six,
				Remote: netip.MustParseAddrPort("198.51.100.9:5000"), ReceiveQueue: 3, SendQueue: 4096, Inode: 51966,
				Congestion: "bbr",
				Info:       sys.TCPInfo{Length: 104, State: 1},
				Memory: Memory{Receive: 1, ReceiveLimit: 2, Send: 3, SendLimit: 4, Forward: 5, Queued: 6, Option: 7,
					Backlog: 8, Drops: 9}}},
		{"a kernel before 4.7, without drops",
			answered(familyIPv4, Closed, four, none, attribute(attrMemory, numbers(1, 2, 3, 4, 5, 6, 7, 8))),
			Socket{Cookie: 1<<32 | 7, State: Closed, Local: four, ReceiveQueue: 3, SendQueue: 4096, Inode: 51966,
				Memory: Memory{Receive: 1, ReceiveLimit: 2, Send: 3, SendLimit: 4, Forward: 5, Queued: 6, Option: 7,
					Backlog: 8}}},
		{"an empty tcp_info", answered(familyIPv4, Established, four, four, attribute(attrInfo, nil)),
			Socket{Cookie: 1<<32 | 7, State: Established, Local: four, Remote: four, ReceiveQueue: 3, SendQueue: 4096,
				Inode: 51966}},
	} {
		got := Socket{Congestion: "of the previous socket"}
		err := got.decode(c.in, names{})
		if d := cmp.Diff(c.want, got, compare); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, d)
		}
	}
	broken := answered(familyIPv4, Listen, four, none, attribute(attrMemory, numbers(1)))
	for name, in := range map[string][]byte{
		"nothing": nil, "half a header": broken[:50], "a truncated attribute": broken[:len(broken)-2],
		"an attribute of no size": answered(familyIPv4, Listen, four, none, []byte{0, 0, 0, 0}),
	} {
		if err := new(Socket).decode(in, names{}); !errors.Is(err, errShort) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDecodeIsFrugal checks for allocations: a host may have a hundred thousand connections.
func TestDecodeIsFrugal(t *testing.T) {
	addr := netip.MustParseAddrPort("[2001:db8::1]:443")
	in := answered(familyIPv6, Established, addr, addr,
		attribute(attrInfo, make([]byte, sys.TCPInfoBytes)), attribute(attrCongestion, []byte("cubic\x00")),
		attribute(attrMemory, numbers(1, 2, 3, 4, 5, 6, 7, 8, 9)))
	known := names{}
	var s Socket
	if n := testing.AllocsPerRun(100, func() { _ = s.decode(in, known) }); n > 0 {
		t.Errorf("%v allocations for a socket", n)
	}
}

func TestRequest(t *testing.T) {
	b := Query{Protocol: TCP, States: []State{Established, Listen}, TCPInfo: true}.request(familyIPv6)
	want := append([]byte{10, 6, 0b1001010, 0}, numbers(1<<1|1<<10)...)
	if d := cmp.Diff(want, b[:8]); d != "" || len(b) != sizeRequest {
		t.Errorf("%d bytes (-want +got):\n%s", len(b), d)
	}
}

func FuzzDecode(f *testing.F) {
	addr := netip.MustParseAddrPort("[2001:db8::1]:443")
	f.Add(answered(familyIPv4, Listen, netip.MustParseAddrPort("192.0.2.1:80"), netip.AddrPort{}))
	f.Add(answered(familyIPv6, Established, addr, addr,
		attribute(attrInfo, make([]byte, 120)), attribute(attrCongestion, []byte("cubic\x00")),
		attribute(attrMemory, numbers(1, 2, 3))))
	f.Fuzz(func(t *testing.T, in []byte) {
		var s Socket
		if err := s.decode(in, names{}); err != nil && !errors.Is(err, errShort) {
			t.Errorf("error without a kind: %v", err)
		}
	})
}

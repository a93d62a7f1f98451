package nl

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

func TestParseLinkState(t *testing.T) {
	message := nltest.Encoded(t, linkMessage(t), func(ae *netlink.AttributeEncoder) {
		ae.Uint32(unix.IFLA_CARRIER_CHANGES, 3)
		ae.Bytes(iflaPermanent, []byte{2, 0, 0, 0, 0, 0xab})
	})
	want := LinkCounters{
		Index: 7, Name: "eth0.100", Kind: "vlan", MTU: 9000, Up: true, Carrier: true, ParentIndex: 3, MasterIndex: 9,
		CarrierChanges: 3, PermanentMAC: "02:00:00:00:00:ab",
	}
	got, err := parseLinkState(message, LinkCounters{})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// The result does not depend on the earlier one, whether of the same link or another.
	for _, was := range []LinkCounters{got, {Index: 7, Name: "eth1", Kind: "bond", PermanentMAC: "02:00:00:00:00:aa"},
		{Index: 7, PermanentMAC: "02"}} {
		got, err := parseLinkState(message, was)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("after %+v: %v (-want +got):\n%s", was, err, diff)
		}
	}
	// The result must not share the attribute's memory, because the next answer overwrites it.
	if n := testing.AllocsPerRun(10, func() { _, _ = parseLinkState(message, got) }); n > 0 {
		t.Errorf("%v allocations for a known link", n)
	}
	if _, err := parseLinkState(message[:sizeIfInfo-1], LinkCounters{}); !errors.Is(err, ErrShort) {
		t.Errorf("cut off: %v", err)
	}
	if _, err := parseLinkState(message[:len(message)-9], LinkCounters{}); !errors.Is(err, ErrShort) {
		t.Errorf("truncated in an attribute: %v", err)
	}
}

func TestParseStats64(t *testing.T) {
	counters := func(n int) []byte {
		var b []byte
		for i := range n {
			b = binary.NativeEndian.AppendUint64(b, uint64(100+i))
		}
		return nltest.Encoded(t, nil, func(ae *netlink.AttributeEncoder) {
			nltest.Unknown(ae)
			ae.Bytes(statsLink64, b)
		})
	}
	for _, c := range []struct {
		n         int
		last      uint64 // rx_nohandler, at the last known place
		malformed bool
	}{{int(LinkCounts) + 3, 123, false}, {int(LinkCounts), 123, false}, {int(RxNoHandler), 0, false},
		{int(TxWindowErrors), 0, true}} {
		got := [LinkCounts]uint64{RxNoHandler: 9}
		found, err := parseStats64(counters(c.n), &got)
		if c.malformed {
			if !errors.Is(err, ErrShort) {
				t.Errorf("%d counters: %v", c.n, err)
			}
			continue
		}
		if err != nil || !found || got[RxPackets] != 100 || got[TxWindowErrors] != 120 || got[RxNoHandler] != c.last {
			t.Errorf("%d counters: %v, %v, %v", c.n, found, got, err)
		}
	}
	if found, err := parseStats64(nil, new([LinkCounts]uint64)); found || err != nil {
		t.Errorf("nothing: %v, %v", found, err)
	}
}

func TestParseQdiscCounters(t *testing.T) {
	got, err := parseQdiscCounters(qdiscMessage(t), "")
	want := QdiscCounters{Index: 4, Kind: "fq", Parent: rootHandle, Handle: 0x10000, BacklogPackets: 1, BacklogBytes: 2,
		Drops: 3, Requeues: 4, Overlimits: 5}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := parseQdiscCounters(qdiscMessage(t)[:sizeTcMsg-1], ""); !errors.Is(err, ErrShort) {
		t.Errorf("cut off: %v", err)
	}
}

package ethtool

import (
	"bytes"
	"testing"

	"github.com/mdlayher/netlink"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// TestModuleMessage checks the request against the numbers of linux/ethtool_netlink.h, and the
// answer.
func TestModuleMessage(t *testing.T) {
	request, err := nl.Encode(nil, func(ae *netlink.AttributeEncoder) { encodeModule(ae, 0x51, 3, 128, 64) })
	if err != nil {
		t.Fatal(err)
	}
	ad, err := netlink.NewAttributeDecoder(request)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint16]uint32{}
	for ad.Next() {
		if b := ad.Bytes(); len(b) == 1 {
			got[ad.Type()] = uint32(b[0])
		} else {
			got[ad.Type()] = u32(b)
		}
	}
	for attribute, want := range map[uint16]uint32{2: 128, 3: 64, 4: 3, 5: 0, 6: 0x51} {
		if got[attribute] != want {
			t.Errorf("attribute %d is %d, want %d", attribute, got[attribute], want)
		}
	}
	memory := bytes.Repeat([]byte{7}, 64)
	answer, err := nl.Encode(nil, func(ae *netlink.AttributeEncoder) { ae.Bytes(eepromData, memory) })
	if err != nil {
		t.Fatal(err)
	}
	if b, err := parseModule(answer, 64); err != nil || !bytes.Equal(b, memory) {
		t.Errorf("%x, %v", b, err)
	}
	if _, err := parseModule(answer, 128); err == nil {
		t.Error("an answer that is too short is no error")
	}
}

package ethtool

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attributes of ETHTOOL_MSG_MODULE_EEPROM_GET: ETHTOOL_A_MODULE_EEPROM_* of
// linux/ethtool_netlink.h, which x/sys lacks.
const (
	eepromOffset  = 2 // u32
	eepromLength  = 3 // u32
	eepromPage    = 4 // u8
	eepromBank    = 5 // u8
	eepromAddress = 6 // u8, on the two-wire bus
	eepromData    = 7 // bytes
)

// module reads ETHTOOL_MSG_MODULE_EEPROM_GET (5.13). A driver that only knows the older call gets
// that from the kernel.
func (k kernel) module(name string, address, page byte, offset, length int) ([]byte, error) {
	data, err := k.ask(unix.ETHTOOL_MSG_MODULE_EEPROM_GET, name, func(ae *netlink.AttributeEncoder) {
		encodeModule(ae, address, page, offset, length)
	})
	if err != nil {
		return nil, err
	}
	return parseModule(data, length)
}

func encodeModule(ae *netlink.AttributeEncoder, address, page byte, offset, length int) {
	ae.Uint32(eepromOffset, uint32(offset))
	ae.Uint32(eepromLength, uint32(length))
	ae.Uint8(eepromPage, page)
	ae.Uint8(eepromBank, 0)
	ae.Uint8(eepromAddress, address)
}

func parseModule(data []byte, length int) ([]byte, error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return nil, err
	}
	for ad.Next() {
		if ad.Type() == eepromData {
			if b := ad.Bytes(); len(b) == length {
				return b, nil
			}
		}
	}
	if ad.Err() != nil {
		return nil, ad.Err()
	}
	return nil, fmt.Errorf("the answer has no %d bytes", length)
}

package nl

import "github.com/mdlayher/netlink"

// TypeOf returns the type of an attribute without its flag bits (nested, byte order).
func TypeOf(a netlink.Attribute) uint16 { return a.Type &^ (netlink.Nested | netlink.NetByteOrder) }

// Find returns the data of the first attribute of a type, or nil.
func Find(attributes []netlink.Attribute, typ uint16) []byte {
	for _, a := range attributes {
		if TypeOf(a) == typ {
			return a.Data
		}
	}
	return nil
}

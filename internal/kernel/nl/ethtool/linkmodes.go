package ethtool

import "github.com/linerate/linerate/internal/kernel/nl"

// LinkModes lists the modes of a link under the names of ethtool(8), sorted: speed, medium and
// duplex ("1000baseT/Full"). The same sets hold ports (TP, FIBRE), Autoneg, Pause, Asym_Pause and
// FEC modes, as in the kernel.
//
// They explain why a link runs below the speed of its NIC: the faster mode is not supported, not
// advertised by this end, or not by the other.
type LinkModes struct {
	Autoneg    bool     // the mode is negotiated rather than forced
	Supported  []string // abilities of the NIC and its medium
	Advertised []string // offered by this end
	Partner    []string // offered by the other end; empty: no link, no negotiation, or not reported
	Lanes      int      // of the link now; 0: not reported (kernel before 5.13, or not by this driver)
}

// LinkModes reads the supported modes of a link and the modes that both ends offer (Linux 5.6).
// Devices without a medium, which nearly all virtual ones are, have no modes, or the error is
// nl.ErrNotSupported.
func (c Client) LinkModes(name string) (LinkModes, error) {
	v, err := c.k.linkModes(name)
	return v, nl.Wrap("read link modes of", name, err)
}

// PermanentAddress reads the hardware address that the manufacturer assigned. It remains when
// another address is set or a bond enslaves the NIC. For devices without one, such as virtual ones,
// the text is empty.
func (c Client) PermanentAddress(name string) (string, error) {
	v, err := c.k.permanentAddress(name)
	return v, nl.Wrap("read permanent address of", name, err)
}

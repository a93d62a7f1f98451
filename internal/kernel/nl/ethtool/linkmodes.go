package ethtool

import "github.com/linerate/linerate/internal/kernel/nl"

// LinkModes are the modes of a link in the words of ethtool(8), sorted: speed, medium and duplex
// ("1000baseT/Full"), and beside them what the kernel keeps in the same set: ports (TP, FIBRE),
// Autoneg, Pause, Asym_Pause, FEC modes.
//
// A link that runs below its card shows here why: the mode is not supported, not advertised by this
// end, or not by the other one.
type LinkModes struct {
	Autoneg    bool     // the mode is negotiated rather than forced
	Supported  []string // what the card and its medium could do
	Advertised []string // what this end offers
	Partner    []string // what the other end offered; empty: no link, no negotiation, or the driver does not tell
	Lanes      int      // of the link now; 0: not told (the kernel is older than 5.13, or the driver has no such thing)
}

// LinkModes reads what a link could do and what both ends offered (Linux 5.6). Devices without a
// medium, nearly all virtual ones, have no modes at all or answer nl.ErrNotSupported.
func (c Client) LinkModes(name string) (LinkModes, error) {
	v, err := c.k.linkModes(name)
	return v, nl.Wrap("read link modes of", name, err)
}

// PermanentAddress reads the hardware address that the maker gave, which stays when somebody sets
// another one or a bond takes the card in. Devices that have none, as software, give an empty text.
func (c Client) PermanentAddress(name string) (string, error) {
	v, err := c.k.permanentAddress(name)
	return v, nl.Wrap("read permanent address of", name, err)
}

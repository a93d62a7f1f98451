package host

import (
	"github.com/linerate/linerate/internal/host/optic"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// ReadOptic asks the pluggable module of an interface of this host for what it is and measures. It
// is no part of a snapshot: the answer comes over a slow bus, some milliseconds for each page, and
// only root may ask. The error is nl.ErrNotSupported where the card has no module that answers, and
// fs.ErrPermission for ordinary users.
func ReadOptic(name string) (*optic.Module, error) {
	client, err := nl.Dial()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	card := ethtool.New(client)
	return optic.Parse(func(address, page byte, offset, length int) ([]byte, error) {
		return card.Module(name, address, page, offset, length)
	})
}

package knob

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/nl"
)

// linkKnobs are attributes of an interface that rtnetlink carries.
type linkKnobs struct{}

// An attribute that is none of those listed is not supported and not "unknown": the name is well formed, and another version may have it.
func (linkKnobs) read(name, attribute string) (Value, error) {
	if attribute != "mtu" && attribute != "txqueuelen" {
		return "", fmt.Errorf("%w: link attribute %s", ErrNotSupported, attribute)
	}
	link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
	if attribute == "mtu" {
		return Value(strconv.Itoa(link.MTU)), err
	}
	return Value(strconv.Itoa(link.TxQueueLen)), err
}

func (linkKnobs) write(name, attribute string, v Value) error {
	if attribute != "mtu" && attribute != "txqueuelen" {
		return fmt.Errorf("%w: link attribute %s", ErrNotSupported, attribute)
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return &RangeError{Value: v, Allowed: "an integer"}
	}
	return do(func(c *nl.Client) error {
		if attribute == "mtu" {
			return c.SetMTU(name, n)
		}
		return c.SetTxQueueLen(name, n)
	})
}

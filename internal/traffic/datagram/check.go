package datagram

import (
	"bytes"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// checkEvery is the number of packets of which one is compared. It is odd, so that in messages with
// an even number of packets, as offloads make them, every place is compared in turn: an offload
// corrupts the last packet of a message, or the one that crosses a page.
const checkEvery = 17

// checker compares samples of payload with what a Sender sends.
type checker struct {
	want   []byte
	header int
	until  int
}

func newChecker(bytes, header int) *checker {
	return &checker{want: engine.Pattern(bytes), header: header}
}

// sample compares a packet, or skips it, and returns how many bytes it compared.
func (c *checker) sample(p []byte) (ok bool, compared int) {
	if c.until > 0 {
		c.until--
		return true, 0
	}
	c.until = checkEvery - 1
	if len(p) <= c.header {
		return true, 0
	}
	return bytes.Equal(p[c.header:], c.want[c.header:len(p)]), len(p) - c.header
}

package freebsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrFormat reports an output that is empty, cut off, or not what the program prints.
var ErrFormat = errors.New("not the expected form")

// Traffic is what netstat -i counts for one link, since boot.
type Traffic struct {
	Name               string
	MTUBytes           int
	RxPackets, RxBytes uint64
	RxErrors           uint64 // of em this includes packets that found no room: see CardCounters
	RxDropped          uint64
	TxPackets, TxBytes uint64
	TxErrors           uint64
	Collisions         uint64
	HasErrors          bool // the line of the link itself, which alone has errors
}

// ParseInterfaces reads `netstat --libxo json -ibn`, the lines of links alone. Addresses have
// counters of their own, which are parts of these. (With -d the drops of both directions have one
// name.)
func ParseInterfaces(b []byte) ([]Traffic, error) {
	var doc struct {
		Statistics struct {
			Interface []struct {
				Name       string  `json:"name"`
				MTU        int     `json:"mtu"`
				Network    string  `json:"network"`
				RxPackets  uint64  `json:"received-packets"`
				RxErrors   *uint64 `json:"received-errors"`
				RxDropped  uint64  `json:"dropped-packets"`
				RxBytes    uint64  `json:"received-bytes"`
				TxPackets  uint64  `json:"sent-packets"`
				TxErrors   uint64  `json:"send-errors"`
				TxBytes    uint64  `json:"sent-bytes"`
				Collisions uint64  `json:"collisions"`
			} `json:"interface"`
		} `json:"statistics"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("netstat -i: %w: %w", ErrFormat, err)
	}
	var all []Traffic
	for _, i := range doc.Statistics.Interface {
		if !strings.HasPrefix(i.Network, "<Link#") || i.Name == "" {
			continue
		}
		t := Traffic{Name: strings.TrimSuffix(i.Name, "*"), MTUBytes: i.MTU, RxPackets: i.RxPackets, RxBytes: i.RxBytes,
			RxDropped: i.RxDropped, TxPackets: i.TxPackets, TxBytes: i.TxBytes, TxErrors: i.TxErrors,
			Collisions: i.Collisions}
		if t.HasErrors = i.RxErrors != nil; t.HasErrors {
			t.RxErrors = *i.RxErrors
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("netstat -i: no link: %w", ErrFormat)
	}
	return all, nil
}

// ParseProtocols reads `netstat --libxo json -s`: counters by protocol and name, tcp.sent-packets.
// What is no count is left out.
func ParseProtocols(b []byte) (map[string]uint64, error) {
	var doc struct {
		Statistics map[string]json.RawMessage `json:"statistics"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("netstat -s: %w: %w", ErrFormat, err)
	}
	counts := make(map[string]uint64)
	for protocol, raw := range doc.Statistics {
		flatten(counts, protocol, raw, 0)
	}
	if len(counts) == 0 {
		return nil, fmt.Errorf("netstat -s: no counter: %w", ErrFormat)
	}
	return counts, nil
}

// flatten takes the counts out of an object and the objects in it.
func flatten(counts map[string]uint64, prefix string, raw json.RawMessage, depth int) {
	const deepest = 4
	var fields map[string]json.RawMessage
	if depth > deepest || json.Unmarshal(raw, &fields) != nil {
		return // a list of histograms, or no object
	}
	for name, value := range fields {
		name = prefix + "." + name
		if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			counts[name] = n
		} else {
			flatten(counts, name, value, depth+1)
		}
	}
}

// Interrupt is one line of vmstat -i.
type Interrupt struct {
	Name  string // irq268: ixl0:rxq0
	Total uint64 // since boot
	Rate  uint64 // per second since boot
}

// ParseInterrupts reads `vmstat --libxo json -i`.
func ParseInterrupts(b []byte) ([]Interrupt, error) {
	var doc struct {
		Statistics struct {
			Interrupt []struct {
				Name  string `json:"name"`
				Total uint64 `json:"total"`
				Rate  uint64 `json:"rate"`
			} `json:"interrupt"`
		} `json:"interrupt-statistics"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("vmstat -i: %w: %w", ErrFormat, err)
	}
	var all []Interrupt
	for _, i := range doc.Statistics.Interrupt {
		all = append(all, Interrupt{strings.TrimSpace(i.Name), i.Total, i.Rate})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("vmstat -i: no interrupt: %w", ErrFormat)
	}
	return all, nil
}

// Card is where a card lost packets, since the driver was loaded.
type Card struct {
	Missed   uint64 // found no room in the card: the host was too slow, or its ring too small
	NoBuffer uint64 // waited in the card because the ring was empty
	CRC      uint64 // damaged on the wire
	Other    uint64 // other damage: alignment, length, symbols
	Overruns uint64 // of the ring, as the driver counts them
	PauseIn  uint64 // pause frames received
	PauseOut uint64 // pause frames sent
	// Unexplained are received errors of netstat that none of these explains.
	Unexplained uint64
}

// CardCounters sorts the sysctls dev.DRIVER.N.* of an em or igb card, by their names without the
// prefix. Errors are those that netstat -i shows: the driver adds missed packets to them, so that
// they alone do not separate a slow host from a bad cable. False: these are no such sysctls.
func CardCounters(sysctls map[string]string, errors uint64) (Card, bool) {
	n := func(names ...string) (sum uint64) {
		for _, name := range names {
			v, err := strconv.ParseUint(sysctls[name], 10, 64)
			if err == nil {
				sum += v
			}
		}
		return sum
	}
	if _, ok := sysctls["mac_stats.missed_packets"]; !ok {
		return Card{}, false
	}
	c := Card{Missed: n("mac_stats.missed_packets"), NoBuffer: n("mac_stats.recv_no_buff"), CRC: n("mac_stats.crc_errs"),
		Other: n("mac_stats.alignment_errs", "mac_stats.recv_errs", "mac_stats.recv_undersize",
			"mac_stats.recv_oversize", "mac_stats.coll_ext_errs"),
		Overruns: n("rx_overruns"), PauseIn: n("mac_stats.xoff_recvd"), PauseOut: n("mac_stats.xoff_txd")}
	if known := c.Missed + c.CRC + c.Other + n("dropped"); errors > known {
		c.Unexplained = errors - known
	}
	return c, true
}

package route

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// From linux/neighbour.h; x/sys/unix lacks them.
const (
	sizeNdtMsg = 4 // family, 3 pad

	ndtaName, ndtaThresh1, ndtaThresh2, ndtaThresh3, ndtaConfig, ndtaStats = 1, 2, 3, 4, 5, 7

	configEntries = 4 // u16 key_len, u16 entry_size, u32 entries

	// struct ndt_stats has eleven u64: allocs, destroys, hash_grows, res_failed, lookups, hits,
	// rcv_probes_mcast, rcv_probes_ucast, periodic_gc_runs, forced_gc_runs, and since Linux 4.3
	// table_fulls.
	statsFailed, statsForced, statsFulls = 3 * 8, 9 * 8, 10 * 8
)

// neighbourTables reads the tables. A table arrives in several messages: the first has its figures,
// each of the others the settings of one interface.
func (k kernel) neighbourTables() ([]NeighbourTable, error) {
	msgs, err := k.Dump(unix.RTM_GETNEIGHTBL, make([]byte, sizeNdtMsg))
	if err != nil {
		return nil, err
	}
	var tables []NeighbourTable
	for _, m := range msgs {
		t, ok, err := parseNeighbourTable(m.Data)
		if err != nil {
			return nil, err
		}
		if ok {
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// parseNeighbourTable reads RTM_NEWNEIGHTBL. ok is false for the settings of an interface.
func parseNeighbourTable(data []byte) (t NeighbourTable, ok bool, err error) {
	ad, err := nl.Attributes(data, sizeNdtMsg)
	if err != nil {
		return t, false, fmt.Errorf("neighbour table message: %w", err)
	}
	for ad.Next() {
		switch ad.Type() {
		case ndtaName:
			t.Name = ad.String()
		case ndtaThresh1, ndtaThresh2, ndtaThresh3:
			t.Thresholds[ad.Type()-ndtaThresh1] = ad.Uint32()
		case ndtaConfig:
			if b := ad.Bytes(); len(b) >= configEntries+4 {
				t.Entries = u32(b[configEntries:])
			}
		case ndtaStats:
			b := ad.Bytes()
			counter := func(at int) uint64 {
				if len(b) < at+8 {
					return 0
				}
				return binary.NativeEndian.Uint64(b[at:])
			}
			t.ResolutionsFailed, t.ForcedCollections, t.Fulls = counter(statsFailed), counter(statsForced),
				counter(statsFulls)
			ok = true
		}
	}
	if err := ad.Err(); err != nil {
		return t, false, fmt.Errorf("neighbour table message: %w", err)
	}
	return t, ok, nil
}

package durable

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
)

// SalvageLog returns what can still be read of a damaged log: every sound frame, in the order of
// their numbers, and how many records are missing between and after them as far as numbers and mark
// show. It writes nothing. A log that is missing has no records.
func SalvageLog(fsys FS, path string) (records [][]byte, missing int, err error) {
	m, err := readMark(fsys, path)
	if err != nil {
		return nil, 0, err
	}
	data, err := fsys.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	// The header may be the damaged part; the mark has the salt too.
	salts := slices.Collect(maps.Keys(m.records))
	if len(data) >= logHeaderSize && string(data[:8]) == logMagic {
		salts = append(salts, [8]byte(data[8:16]))
	}
	var best map[uint64][]byte
	var marked uint64
	for _, salt := range salts {
		if found := soundFrames(data, salt); len(found) > len(best) {
			best, marked = found, m.records[salt]
		}
	}
	if best == nil {
		for _, n := range m.records {
			marked = max(marked, n)
		}
	}
	numbers := slices.Sorted(maps.Keys(best))
	for _, n := range numbers {
		records = append(records, best[n])
		marked = max(marked, n+1)
	}
	return records, int(marked) - len(records), nil
}

// soundFrames returns the payloads of all sound frames of a log with this salt, by number.
func soundFrames(data []byte, salt [8]byte) map[uint64][]byte {
	found := map[uint64][]byte{}
	for at := 0; ; at++ {
		i := bytes.Index(data[at:], frameMark)
		if i < 0 {
			return found
		}
		at += i
		length, sequence, sum, ok := parseFrameHeader(data[at:], salt)
		if !ok || frameHeaderSize+length > len(data)-at {
			continue
		}
		payload := data[at+frameHeaderSize : at+frameHeaderSize+length]
		if sum == payloadSum(salt, payload) {
			found[sequence] = slices.Clone(payload)
		}
	}
}

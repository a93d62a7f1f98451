package timeline

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
)

// segment is one file of records. Only the last one is written to.
type segment struct {
	number    int
	size      int64 // of the file
	live      int   // events whose last state it has
	liveBytes int64 // of their records
}

// frameBytes is what package durable adds to a record.
const frameBytes = 24

func (s *Store) segmentPath(number int) string {
	return filepath.Join(s.o.Dir, fmt.Sprintf("events-%08d.log", number))
}

// segmentNumber parses the number of a segment from its file name; 0: not a segment.
func segmentNumber(name string) int {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(name, ".log"), "events-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n <= 0 || name != fmt.Sprintf("events-%08d.log", n) {
		return 0
	}
	return n
}

// load reads the segments, oldest first, and opens the last one for writing.
func (s *Store) load(numbers []int) error {
	for i, number := range numbers {
		path := s.segmentPath(number)
		var records [][]byte
		var log *durable.Log
		var err error
		if i == len(numbers)-1 {
			// A torn tail can stay if the disk refuses to cut it off: the records before it are
			// readable.
			if log, records, err = durable.OpenLog(s.o.FS, path); err != nil && !errors.Is(err, durable.ErrCorrupt) {
				records, _, err = durable.ReadLog(s.o.FS, path)
			}
		} else {
			records, _, err = durable.ReadLog(s.o.FS, path)
		}
		if errors.Is(err, durable.ErrCorrupt) {
			if err := s.putAside(number, err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		seg := &segment{number: number, size: logBytes(records)}
		s.segments, s.log = append(s.segments, seg), log
		for _, record := range records {
			e, err := parseRecord(record)
			if err != nil {
				// A whole record of another program version. The other records count.
				s.warn("%s: %v", filepath.Base(path), err)
				continue
			}
			s.wrote(s.index.put(s.shared(e)), seg, record)
		}
	}
	return nil
}

// putAside renames a damaged segment, so that the next one can be written and a person can inspect
// it.
func (s *Store) putAside(number int, why error) error {
	names, err := s.o.FS.ReadDir(s.o.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "damaged-") {
			if err := s.o.FS.Remove(filepath.Join(s.o.Dir, name)); err != nil {
				return err
			}
		}
	}
	aside := fmt.Sprintf("damaged-%08d.log", number)
	if err := s.o.FS.Rename(s.segmentPath(number), filepath.Join(s.o.Dir, aside)); err != nil {
		return err
	}
	s.warn("events are missing: %v; the file is now %s", why, aside)
	return s.o.FS.SyncDir(s.o.Dir)
}

func logBytes(records [][]byte) int64 {
	n := int64(20)
	for _, r := range records {
		n += frameBytes + int64(len(r))
	}
	return n
}

// wrote records that a segment has the state of an event.
func (s *Store) wrote(e *entry, seg *segment, record []byte) {
	s.forget(e)
	e.segment, e.bytes, e.dirty = seg, frameBytes+int64(len(record)), false
	seg.live++
	seg.liveBytes += e.bytes
}

// forget records that an event in a segment is dead.
func (s *Store) forget(e *entry) {
	if e.segment != nil {
		e.segment.live--
		e.segment.liveBytes -= e.bytes
		e.segment, e.bytes = nil, 0
	}
}

// write writes the state of one event to disk.
func (s *Store) write(e *entry) error {
	record, err := marshalRecord(e.Event)
	if err != nil {
		return err
	}
	if s.log != nil && s.log.Size()+frameBytes+int64(len(record)) > s.segmentBytes && s.last().live > 0 {
		s.seal()
	}
	fresh := s.log == nil
	if fresh {
		if err := s.begin(nil); err != nil {
			return err
		}
	}
	if err := s.log.Append(record); err != nil {
		s.seal()
		if fresh {
			// It holds nothing that counts, and a disk that refuses repeatedly must not collect
			// empty files. If this fails too, the next segment takes its number and its place.
			_ = s.o.FS.Remove(s.segmentPath(s.last().number))
			s.segments = s.segments[:len(s.segments)-1]
		}
		return err
	}
	s.last().size = s.log.Size()
	s.wrote(e, s.last(), record)
	return nil
}

func (s *Store) last() *segment { return s.segments[len(s.segments)-1] }

// seal closes the last segment for writing.
func (s *Store) seal() {
	if s.log != nil {
		_ = s.log.Close() // every record is on disk, or was refused
		s.log = nil
	}
}

// begin makes a new segment that starts with these events, and opens it for writing.
func (s *Store) begin(entries []*entry) error {
	s.seal()
	number := 1
	if len(s.segments) > 0 {
		number = s.last().number + 1
	}
	records := make([][]byte, len(entries))
	for i, e := range entries {
		var err error
		if records[i], err = marshalRecord(e.Event); err != nil {
			return err
		}
	}
	// Written from scratch in any case: an attempt that failed at its very end may have left a file
	// whose name is not durable.
	if err := durable.RewriteLog(s.o.FS, s.segmentPath(number), records); err != nil {
		return err
	}
	log, _, err := durable.OpenLog(s.o.FS, s.segmentPath(number))
	if err != nil {
		return err
	}
	seg := &segment{number: number, size: log.Size()}
	s.segments, s.log = append(s.segments, seg), log
	for i, e := range entries {
		s.wrote(e, seg, records[i])
	}
	return nil
}

// compact writes the live events of old segments into new ones, one segment after the other, so
// that it needs hardly more room.
func (s *Store) compact() error {
	s.seal()
	old := append([]*segment(nil), s.segments...)
	live := make(map[*segment][]*entry)
	for _, e := range s.index.order {
		if e.segment != nil {
			live[e.segment] = append(live[e.segment], e)
		}
	}
	var carried []*entry
	bytes := int64(0)
	for i, seg := range old {
		carried, bytes = append(carried, live[seg]...), bytes+seg.liveBytes
		if bytes < s.segmentBytes && i < len(old)-1 {
			continue
		}
		if len(carried) > 0 {
			if err := s.begin(carried); err != nil {
				return err
			}
		}
		if err := s.removeDead(); err != nil {
			return err
		}
		carried, bytes = nil, 0
	}
	return nil
}

// removeDead removes the oldest segments without live events. A dead segment behind a live one
// stays: its record of an event may be what keeps an older state of that event from reappearing.
func (s *Store) removeDead() error {
	for len(s.segments) > 0 && s.segments[0].live == 0 && (len(s.segments) > 1 || s.log == nil) {
		if err := s.o.FS.Remove(s.segmentPath(s.segments[0].number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// One by one: of two removals, power loss may undo either one.
		if err := s.o.FS.SyncDir(s.o.Dir); err != nil {
			return err
		}
		s.segments = s.segments[1:]
	}
	return nil
}

package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
)

// A torn tail and a tail that was cut off look alike. A marked log has a second file that counts
// its records: path.mark, to which Append adds the number of records after each one is on disk. The
// mark itself is not synced, so after a power loss it may count too few and never too many. The
// salt of a log that has a mark shows it, because a mark can be removed together with the end of
// its log.
//
// A mark is a sequence of frames: the salt of the log, the number of records, the checksum of both.
const markFrameSize = 8 + 8 + 4

// markPath returns the name of the mark of a log.
func markPath(path string) string { return path + ".mark" }

func appendMarkFrame(data []byte, salt [8]byte, records uint64) []byte {
	start := len(data)
	data = append(data, salt[:]...)
	data = binary.LittleEndian.AppendUint64(data, records)
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data[start:], castagnoli()))
}

// saltSum is how many bytes of the salt of a log with a mark are a checksum of the others. Logs of
// older versions, which may have no mark, have random salts: one in 16 million has such a sum.
const saltSum = 3

// newMarkedSalt is newSalt for a log that has a mark.
func newMarkedSalt() [8]byte {
	salt := newSalt()
	copy(salt[8-saltSum:], sumOfSalt(salt))
	return salt
}

// hasMark reports whether a log with this salt was made with a mark.
func hasMark(salt [8]byte) bool { return bytes.Equal(salt[8-saltSum:], sumOfSalt(salt)) }

func sumOfSalt(salt [8]byte) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.Checksum(salt[:8-saltSum], castagnoli()))[:saltSum]
}

// noLog is the salt of a mark whose log is about to be made.
var noLog [8]byte

// mark is the content of a mark.
type mark struct {
	known   bool // at least one frame is sound
	frames  int
	damaged bool // some of it is no frame
	records map[[8]byte]uint64
}

// readMark reads the mark of a log. A missing or damaged one is empty: logs of older versions have
// none.
func readMark(fsys FS, path string) (mark, error) {
	m := mark{records: map[[8]byte]uint64{}}
	data, err := fsys.ReadFile(markPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	for ; len(data) > 0; data = data[min(markFrameSize, len(data)):] {
		m.frames++
		if len(data) < markFrameSize || crc32.Checksum(data[:16], castagnoli()) != binary.LittleEndian.Uint32(data[16:]) {
			m.damaged = true
			continue
		}
		salt := [8]byte(data[:8])
		m.known = true
		m.records[salt] = max(m.records[salt], binary.LittleEndian.Uint64(data[8:]))
	}
	return m, nil
}

// disagrees returns how a log contradicts its mark, or "".
func (m mark) disagrees(content logContent) string {
	switch {
	case !m.known && hasMark(content.salt):
		return "its mark is missing or damaged: records at the end may be missing too"
	case !m.known:
		return ""
	}
	want, ok := m.records[content.salt]
	have := uint64(len(content.records))
	switch {
	case !ok:
		return "it is not the log that its mark belongs to"
	case want > have:
		return fmt.Sprintf("%d of %d records are missing at the end", want-have, want)
	}
	return ""
}

// readMarked reads a log and compares it with its mark. Another process may append or rewrite
// meanwhile, so a contradiction must show twice.
func readMarked(fsys FS, path string) (content logContent, size int, err error) {
	for attempt := 0; ; attempt++ {
		// The mark first: it follows the log.
		m, err := readMark(fsys, path)
		if err != nil {
			return logContent{}, 0, err
		}
		data, err := fsys.ReadFile(path)
		if _, soon := m.records[noLog]; errors.Is(err, fs.ErrNotExist) && soon {
			return logContent{}, 0, err
		}
		if errors.Is(err, fs.ErrNotExist) && m.known && attempt > 0 {
			return logContent{}, 0, &CorruptError{Path: path, Reason: "the log is missing, its mark is there"}
		}
		if errors.Is(err, fs.ErrNotExist) && m.known {
			continue
		}
		if err != nil {
			return logContent{}, 0, err
		}
		content, err := parseLog(path, data)
		if err != nil {
			return logContent{}, 0, err
		}
		why := m.disagrees(content)
		if why == "" {
			return content, len(data), nil
		}
		if attempt > 0 {
			return logContent{}, 0, &CorruptError{Path: path, Offset: content.end, Reason: why}
		}
	}
}

// OpenMarkedLog is OpenLog for a log with a mark. It also returns a *CorruptError for a log that
// lost its end, that was replaced, or that is missing while its mark is there.
func OpenMarkedLog(fsys FS, path string) (*Log, [][]byte, error) {
	content, _, err := readMarked(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = RewriteMarkedLog(fsys, path, nil); err == nil {
			content, _, err = readMarked(fsys, path)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	log, records, err := OpenLog(fsys, path)
	if err != nil {
		return nil, nil, err
	}
	if log.err != nil {
		return log, records, nil // the storage takes no writes
	}
	// Best effort, here and in Append: without its mark a log is still a log.
	m, err := readMark(fsys, path)
	if err == nil && (m.damaged || m.frames > maxMarkFrames || m.records[content.salt] < log.next) {
		err = Replace(fsys, markPath(path), appendMarkFrame(nil, content.salt, log.next), logPerm)
	}
	if err == nil {
		log.mark, _ = fsys.OpenAppend(markPath(path), logPerm)
	}
	return log, records, nil
}

// maxMarkFrames is how long a mark may grow before it is rewritten at the next opening: 20 kB.
const maxMarkFrames = 1024

// ReadMarkedLog is ReadLog for a log with a mark.
func ReadMarkedLog(fsys FS, path string) (records [][]byte, torn int64, err error) {
	content, size, err := readMarked(fsys, path)
	if err != nil {
		return nil, 0, err
	}
	return content.records, int64(size) - content.end, nil
}

// RewriteMarkedLog is RewriteLog for a log with a mark. After a crash at any point, the mark agrees
// with the log that is there.
func RewriteMarkedLog(fsys FS, path string, records [][]byte) error {
	salt := newMarkedSalt()
	data, err := logData(path, salt, records)
	if err != nil {
		return err
	}
	own := appendMarkFrame(nil, salt, uint64(len(records)))
	// First both logs agree with the mark, then only the new one.
	before, err := fsys.ReadFile(markPath(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if before = before[:len(before)/markFrameSize*markFrameSize]; len(before) == 0 {
		if before, err = markOf(fsys, path); err != nil {
			return err
		}
	}
	if err := Replace(fsys, markPath(path), append(before, own...), logPerm); err != nil {
		return err
	}
	if err := Replace(fsys, path, data, logPerm); err != nil {
		return err
	}
	return Replace(fsys, markPath(path), own, logPerm)
}

// markOf returns a mark that agrees with a log without one, or with a log that does not exist.
func markOf(fsys FS, path string) ([]byte, error) {
	data, err := fsys.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return appendMarkFrame(nil, noLog, 0), nil
	}
	if err != nil {
		return nil, err
	}
	if content, err := parseLog(path, data); err == nil && !hasMark(content.salt) {
		return appendMarkFrame(nil, content.salt, 0), nil
	}
	return nil, nil // damaged, and still reported after a crash
}

// writeMark adds the number of records to the mark.
func (l *Log) writeMark() {
	if l.mark == nil {
		return
	}
	if _, err := l.mark.Write(appendMarkFrame(nil, l.salt, l.next)); err != nil {
		_ = l.mark.Close() // a mark that counts too few is no harm, one with half a frame is
		l.mark = nil
	}
}

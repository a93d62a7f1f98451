package durable

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"syscall"
)

// MaxRecord is the largest payload of a record, in bytes.
const MaxRecord = 1 << 20

const (
	logMagic        = "lnrlog1\n"
	logHeaderSize   = 20
	frameHeaderSize = 24
)

// logPerm lets every user read: a log's facts about a host are not secret, and reading needs no
// privilege.
const logPerm = 0o644

var frameMark = []byte{0xF1, 0xAB, 0x52, 0xFE}

// castagnoli returns the table of CRC-32C. The first call makes it, which takes half a millisecond.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// The errors of a log.
var (
	// ErrCorrupt reports damage to a log that no crash explains; the actual error is a
	// *CorruptError.
	ErrCorrupt = errors.New("log is corrupt")
	// ErrPoisoned reports that an earlier write or sync of this log failed, so this process must
	// not write to it again.
	ErrPoisoned = errors.New("log takes no more writes after a failed one")
)

// CorruptError locates the damage of a log.
type CorruptError struct {
	Path   string
	Offset int64 // of the frame, in bytes
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("read %s: %v at byte %d: %s", e.Path, ErrCorrupt, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Log is a record log open for appending. It is not safe for concurrent use, and only one process
// may have it open: hold a Lock.
type Log struct {
	path string
	file File
	salt [8]byte
	next uint64 // sequence number of the next frame
	size int64
	err  error // once set, it remains
	mark File  // counts the records, see OpenMarkedLog; nil: none
}

// OpenLog opens the log at path and returns its records, oldest first. It creates a missing log. It
// truncates a torn tail, and that is on disk before OpenLog returns. A corrupt log causes a
// *CorruptError and is not changed. A log on a read-only file system is opened for its records:
// every Append fails.
func OpenLog(fsys FS, path string) (*Log, [][]byte, error) {
	data, err := fsys.ReadFile(path)
	// By Replace, so that a power loss during creation leaves no log or an empty one, and never a
	// truncated header, which would be corruption.
	if errors.Is(err, fs.ErrNotExist) {
		if err := RewriteLog(fsys, path, nil); err != nil {
			return nil, nil, err
		}
		data, err = fsys.ReadFile(path)
	}
	if err != nil {
		return nil, nil, err
	}
	content, err := parseLog(path, data)
	if err != nil {
		return nil, nil, err
	}
	file, err := fsys.OpenAppend(path, logPerm)
	if errors.Is(err, syscall.EROFS) {
		// What a log on a read-only file system knows is needed all the same.
		return &Log{path: path, salt: content.salt, next: uint64(len(content.records)), size: content.end, err: err},
			content.records, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if content.end < int64(len(data)) {
		// The next frame must not follow a torn one, not even after an immediate crash, so the
		// truncation is synced separately.
		err := file.Truncate(content.end)
		if err == nil {
			err = file.Sync()
		}
		if err != nil {
			_ = file.Close() // The error above is the relevant one.
			return nil, nil, fmt.Errorf("cut torn tail of %s: %w", path, err)
		}
	}
	log := &Log{path: path, file: file, salt: content.salt, next: uint64(len(content.records)), size: content.end}
	return log, content.records, nil
}

// ReadLog returns the records of the log at path, oldest first, and the number of bytes of a torn
// tail after them. It writes nothing and may run while another process appends: a half-written
// record looks like a torn tail.
func ReadLog(fsys FS, path string) (records [][]byte, torn int64, err error) {
	data, err := fsys.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	content, err := parseLog(path, data)
	if err != nil {
		return nil, 0, err
	}
	return content.records, int64(len(data)) - content.end, nil
}

// RewriteLog atomically replaces the log at path by one with these records. A Log open on the old
// file must not be used again.
func RewriteLog(fsys FS, path string, records [][]byte) error {
	data, err := logData(path, newSalt(), records)
	if err != nil {
		return err
	}
	return Replace(fsys, path, data, logPerm)
}

// newSalt returns a number that no frame of another log has.
func newSalt() (salt [8]byte) {
	rand.Read(salt[:]) // Never fails: package crypto/rand ends the program instead.
	return salt
}

// logData returns the content of a log with these records.
func logData(path string, salt [8]byte, records [][]byte) ([]byte, error) {
	data := appendLogHeader(nil, salt)
	for i, record := range records {
		if len(record) > MaxRecord {
			return nil, fmt.Errorf("replace %s: record of %d bytes is above the limit of %d", path, len(record), MaxRecord)
		}
		data = appendFrame(data, salt, uint64(i), record)
	}
	return data, nil
}

// Append adds a record and returns once it is on disk. After any error except one about a record
// that is too long, the log is poisoned: the next OpenLog may or may not find the record, and every
// further Append fails with ErrPoisoned.
func (l *Log) Append(record []byte) error {
	if l.err != nil {
		return fmt.Errorf("append to %s: %w: %w", l.path, ErrPoisoned, l.err)
	}
	if len(record) > MaxRecord {
		return fmt.Errorf("append to %s: record of %d bytes is above the limit of %d", l.path, len(record), MaxRecord)
	}
	frame := appendFrame(nil, l.salt, l.next, record)
	// One write call for the whole frame. A short write, on a full disk, leaves a torn tail for the
	// next OpenLog; truncating it here would be another write to a disk that has just refused one.
	if _, err := l.file.Write(frame); err != nil {
		l.err = err
		return fmt.Errorf("append to %s: %w", l.path, err)
	}
	// The kernel reports a lost page once and marks it clean afterwards (package comment, Sources).
	// A second, successful fsync would prove nothing about this frame, so none is tried.
	if err := l.file.Sync(); err != nil {
		l.err = err
		return fmt.Errorf("append to %s: sync: %w", l.path, err)
	}
	l.next++
	l.size += int64(len(frame))
	l.writeMark()
	return nil
}

// Size returns the length of the log in bytes.
func (l *Log) Size() int64 { return l.size }

// Err returns the failure that poisoned the log, or nil if the log is writable.
func (l *Log) Err() error { return l.err }

// Close closes the file. Every record is already on disk.
func (l *Log) Close() error {
	if l.mark != nil {
		_ = l.mark.Close() // nothing depends on its last frame
	}
	if l.file == nil {
		return nil // read-only
	}
	return l.file.Close()
}

// logContent is the result of parseLog.
type logContent struct {
	salt    [8]byte
	records [][]byte // slices of the data parsed
	end     int64    // after the last valid frame
}

// parseLog reads a log file. The path is for messages.
func parseLog(path string, data []byte) (logContent, error) {
	var content logContent
	corrupt := func(offset int, reason string) (logContent, error) {
		return logContent{}, &CorruptError{Path: path, Offset: int64(offset), Reason: reason}
	}
	// A log is created by Replace, so its name never refers to half a header.
	if len(data) < logHeaderSize {
		return corrupt(0, "file header is cut short")
	}
	if string(data[:8]) != logMagic {
		return corrupt(0, "file is not a record log")
	}
	if binary.LittleEndian.Uint32(data[16:]) != crc32.Checksum(data[:16], castagnoli()) {
		return corrupt(0, "file header has a wrong checksum")
	}
	copy(content.salt[:], data[8:16])

	offset := logHeaderSize
	for offset < len(data) {
		frame := data[offset:]
		length, sequence, sum, ok := parseFrameHeader(frame, content.salt)
		if !ok {
			if follower := findFrame(data, offset+1, content.salt); follower >= 0 {
				return corrupt(offset, fmt.Sprintf("damaged frame is followed by a valid one at byte %d", follower))
			}
			break
		}
		// The salt excludes frames of other logs, so only a log whose middle is missing or
		// duplicated reaches this.
		if sequence != uint64(len(content.records)) {
			return corrupt(offset, fmt.Sprintf("frame has number %d where %d is due", sequence, len(content.records)))
		}
		end := frameHeaderSize + length
		// A complete header with too few bytes after it: the crash occurred between the first and
		// the last block of one append.
		if end > len(frame) {
			break
		}
		payload := frame[frameHeaderSize:end]
		if sum != payloadSum(content.salt, payload) {
			if end < len(frame) {
				return corrupt(offset, "damaged frame is not the last one")
			}
			break
		}
		// The third index keeps an append to one record from overwriting the next, which is in the
		// same array.
		content.records = append(content.records, payload[:length:length])
		offset += end
	}
	content.end = int64(offset)
	return content, nil
}

// findFrame returns the offset of the first valid frame header at or after from, or -1. The payload
// of that frame does not matter: its header alone proves an append that began after the sync of the
// damaged frame.
func findFrame(data []byte, from int, salt [8]byte) int {
	for {
		i := bytes.Index(data[from:], frameMark)
		if i < 0 {
			return -1
		}
		from += i
		if _, _, _, ok := parseFrameHeader(data[from:], salt); ok {
			return from
		}
		from++
	}
}

func parseFrameHeader(data []byte, salt [8]byte) (length int, sequence uint64, sum uint32, ok bool) {
	if len(data) < frameHeaderSize || !bytes.Equal(data[:4], frameMark) {
		return 0, 0, 0, false
	}
	// Before any field is used: a random length must not determine the next offset.
	if binary.LittleEndian.Uint32(data[20:]) != payloadSum(salt, data[:20]) {
		return 0, 0, 0, false
	}
	size := binary.LittleEndian.Uint32(data[4:])
	if size > MaxRecord {
		return 0, 0, 0, false
	}
	return int(size), binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint32(data[16:]), true
}

func appendLogHeader(data []byte, salt [8]byte) []byte {
	start := len(data)
	data = append(data, logMagic...)
	data = append(data, salt[:]...)
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data[start:], castagnoli()))
}

func appendFrame(data []byte, salt [8]byte, sequence uint64, payload []byte) []byte {
	start := len(data)
	data = append(data, frameMark...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(payload)))
	data = binary.LittleEndian.AppendUint64(data, sequence)
	data = binary.LittleEndian.AppendUint32(data, payloadSum(salt, payload))
	data = binary.LittleEndian.AppendUint32(data, payloadSum(salt, data[start:]))
	return append(data, payload...)
}

// payloadSum is the checksum of the salt followed by data.
func payloadSum(salt [8]byte, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(salt[:], castagnoli()), castagnoli(), data)
}

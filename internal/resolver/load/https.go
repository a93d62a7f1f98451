package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"
)

// httpsChannel is DNS over HTTPS: one HTTP/2 connection, one POST a query (RFC 8484 §4.1). It
// speaks the part of HTTP/2 that a client without pushes and priorities needs. The program links no
// web client (docs/design/dependencies.md), and a load generator needs to know when a query left.
type httpsChannel struct {
	conn   net.Conn
	reader *bufio.Reader
	decode *hpack.Decoder
	status string // of the headers being decoded

	used int64 // octets of answers since the window was opened last

	mu      sync.Mutex // guards the fields below
	path    string
	host    string
	next    uint32 // stream
	streams map[uint32]*stream
	out     []byte
	spare   []byte // memory for the next ones
	owed    int    // octets of out that the server's frames asked for
	writing bool   // a goroutine writes, also what is added to out meanwhile
	window  int64  // octets that the connection may still carry to the server
	initial int64  // of each stream
	most    int    // streams at a time
	changed *sync.Cond
	broken  error
	leaving bool // the server takes no further requests
	patient time.Duration
}

// stream is one request that waits for its answer.
type stream struct {
	id   uint16 // of the query
	body []byte
}

// Frame types, flags and settings of RFC 9113 §6.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameGoAway       = 7
	frameWindow       = 8
	frameContinuation = 9

	flagEndStream  = 1 // also ACK, of settings and ping
	flagEndHeaders = 4
	flagPadded     = 8
	flagPriority   = 0x20

	settingStreams = 3
	settingWindow  = 4

	http2Window   = 65535   // initial, RFC 9113 §6.9.2
	mostFrame     = 1 << 14 // RFC 9113 §4.2, which we do not raise
	ourWindow     = 1 << 30
	mostHeaders   = 1 << 16
	mostOwed      = 1 << 16
	headerOctets  = 9
	commonStreams = 100 // until the server's settings arrive, as RFC 9113 §6.5.2 recommends at least
)

// errHTTP is wrapped by errors about what a server sent.
var errHTTP = errors.New("unexpected http/2")

// statusError is a request that the server refused, with the status that it gave.
type statusError string

func (s statusError) Error() string { return fmt.Sprintf("http status %.3q", string(s)) }

func dialHTTPS(ctx context.Context, o Options) (channel, error) {
	conn, err := dialSecure(ctx, o, "h2")
	if err != nil {
		return nil, err
	}
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		_ = conn.Close() // the error is that of the protocol
		return nil, fmt.Errorf("%w: the server does not offer it", errHTTP)
	}
	h := newHTTPS(conn, o)
	// Preface, settings (no push), and a window for the answers that never closes in practice; receive
	// opens it again.
	out := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	out = appendFrame(out, frameSettings, 0, 0, []byte{0, 2, 0, 0, 0, 0, 0, settingWindow, 0, 0xff, 0xff, 0xff})
	out = appendFrame(out, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, ourWindow))
	if _, err := conn.Write(out); err != nil {
		_ = conn.Close() // the first error explains
		return nil, err
	}
	return h, nil
}

// newHTTPS returns a channel on a connection, before the preface.
func newHTTPS(conn net.Conn, o Options) *httpsChannel {
	h := &httpsChannel{conn: conn, reader: bufio.NewReaderSize(conn, 1<<16), path: o.Path, host: o.ServerName, next: 1,
		streams: map[uint32]*stream{}, window: http2Window, initial: http2Window, most: commonStreams, patient: o.Timeout}
	if h.host == "" {
		h.host = o.Server.String()
	}
	h.changed = sync.NewCond(&h.mu)
	h.decode = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == ":status" {
			h.status = f.Value
		}
	})
	h.decode.SetMaxStringLength(mostHeaders)
	return h
}

// appendFrame appends a frame.
func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// send opens one stream a query. It waits while the server allows no further stream, or no further
// octets.
func (h *httpsChannel) send(queries [][]byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range queries {
		if len(h.streams) >= h.most || h.window < int64(len(q)) {
			if err := h.flush(); err != nil {
				return err
			}
		}
		until := time.Now().Add(h.patient)
		timer := time.AfterFunc(h.patient, h.changed.Broadcast)
		for h.broken == nil && (len(h.streams) >= h.most || h.window < int64(len(q))) && time.Now().Before(until) {
			h.changed.Wait()
		}
		timer.Stop()
		switch {
		case h.broken != nil:
			return h.broken
		case h.leaving: // lost, like those that are on the way
			return h.flush()
		case len(h.streams) >= h.most || h.window < int64(len(q)) || h.initial < int64(len(q)):
			return fmt.Errorf("%w: the server accepts no further request", errHTTP)
		}
		h.request(q)
	}
	return h.flush()
}

// request appends one request.
func (h *httpsChannel) request(q []byte) {
	var block bytes.Buffer
	// A new encoder a request writes no dynamic entries, and needs none of the server's settings.
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSizeLimit(0)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", h.host}, {":path", h.path},
		{"accept", "application/dns-message"}, {"content-type", "application/dns-message"},
		{"content-length", strconv.Itoa(len(q))}} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // a buffer does not fail
	}
	h.out = appendFrame(h.out, frameHeaders, flagEndHeaders, h.next, block.Bytes())
	h.out = appendFrame(h.out, frameData, flagEndStream, h.next, q)
	h.streams[h.next] = &stream{id: binary.BigEndian.Uint16(q)}
	h.window -= int64(len(q))
	h.next += 2
}

// flush writes what is pending. It does not hold the lock meanwhile: a server that waits for its
// reader reads nothing itself, and the reader needs the lock.
func (h *httpsChannel) flush() error {
	if h.writing {
		return nil
	}
	h.writing = true
	var err error
	for err == nil && len(h.out) > 0 {
		out := h.out
		h.out, h.owed = h.spare[:0], 0
		h.mu.Unlock()
		if err = h.conn.SetWriteDeadline(time.Now().Add(h.patient)); err == nil {
			_, err = h.conn.Write(out)
		}
		h.mu.Lock()
		h.spare = out
	}
	h.writing = false
	return err
}

// receive returns the body of the next complete answer.
func (h *httpsChannel) receive() ([]byte, error) {
	for {
		var m []byte
		err := io.EOF
		if left, leaving := h.left(); left > 0 || !leaving {
			m, err = h.frame()
		}
		var status statusError
		if errors.As(err, &status) {
			return nil, err // of one request: the connection goes on
		}
		if err != nil {
			h.mu.Lock()
			h.broken = err
			h.mu.Unlock()
			h.changed.Broadcast()
			return nil, err
		}
		if m != nil {
			return m, nil
		}
	}
}

// frame reads one frame and returns the answer that it completes, if any.
func (h *httpsChannel) frame() ([]byte, error) {
	kind, flags, id, payload, err := h.read()
	if err != nil {
		return nil, err
	}
	switch kind {
	case frameHeaders:
		if payload, err = unpadded(flags, payload, flags&flagPriority != 0); err != nil {
			return nil, err
		}
		for flags&flagEndHeaders == 0 {
			k, f, i, more, err := h.read()
			if err != nil {
				return nil, err
			}
			if k != frameContinuation || i != id || len(payload)+len(more) > mostHeaders {
				return nil, fmt.Errorf("%w: a frame between the parts of headers", errHTTP)
			}
			payload, flags = append(payload, more...), flags|f&flagEndHeaders
		}
		h.status = ""
		if _, err := h.decode.Write(payload); err != nil {
			return nil, fmt.Errorf("%w: %w", errHTTP, err)
		}
		if err := h.decode.Close(); err != nil {
			return nil, fmt.Errorf("%w: %w", errHTTP, err)
		}
		switch {
		case strings.HasPrefix(h.status, "1"): // the final one follows
			return nil, nil
		case h.status != "" && h.status != "200": // without one these are trailers
			h.mu.Lock()
			delete(h.streams, id) // its query stays without an answer (RFC 8484 §4.2.1)
			h.mu.Unlock()
			h.changed.Broadcast()
			return nil, statusError(h.status)
		}
		return h.deliver(id, nil, flags&flagEndStream != 0)
	case frameData:
		body, err := unpadded(flags, payload, false)
		if err != nil {
			return nil, err
		}
		if h.used += int64(len(payload)); h.used > ourWindow/2 {
			opened := binary.BigEndian.AppendUint32(nil, uint32(h.used))
			if err := h.reply(appendFrame(nil, frameWindow, 0, 0, opened)); err != nil {
				return nil, err
			}
			h.used = 0
		}
		return h.deliver(id, body, flags&flagEndStream != 0)
	case frameReset:
		// Its query stays without an answer.
		h.mu.Lock()
		delete(h.streams, id)
		h.mu.Unlock()
		h.changed.Broadcast()
	case frameSettings:
		if flags&flagEndStream != 0 {
			return nil, nil
		}
		h.settings(payload)
		return nil, h.reply(appendFrame(nil, frameSettings, flagEndStream, 0, nil))
	case framePing:
		if flags&flagEndStream == 0 {
			return nil, h.reply(appendFrame(nil, framePing, flagEndStream, 0, payload))
		}
	case frameGoAway:
		if len(payload) < 8 {
			return nil, io.EOF
		}
		// The server still answers what it has begun (RFC 9113 §6.8). nginx goes after 1000 requests.
		h.mu.Lock()
		defer h.mu.Unlock()
		h.leaving = true
		for id := range h.streams {
			if id > binary.BigEndian.Uint32(payload)&(1<<31-1) {
				delete(h.streams, id)
			}
		}
		h.changed.Broadcast()
		return nil, h.conn.SetReadDeadline(time.Now().Add(h.patient))
	case frameWindow:
		if len(payload) == 4 && id == 0 {
			h.mu.Lock()
			h.window += int64(binary.BigEndian.Uint32(payload) & (1<<31 - 1))
			h.mu.Unlock()
			h.changed.Broadcast()
		}
	}
	return nil, nil
}

// left returns how many requests wait, and whether the server takes no further ones.
func (h *httpsChannel) left() (n int, leaving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams), h.leaving
}

// read reads one frame.
func (h *httpsChannel) read() (kind, flags byte, id uint32, payload []byte, err error) {
	var head [headerOctets]byte
	if _, err = io.ReadFull(h.reader, head[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	if n > mostFrame {
		return 0, 0, 0, nil, fmt.Errorf("%w: a frame of %d octets", errHTTP, n)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(h.reader, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1), payload, err
}

// unpadded returns the payload of a frame without padding and priority.
func unpadded(flags byte, p []byte, priority bool) ([]byte, error) {
	pad := 0
	if flags&flagPadded != 0 {
		if len(p) == 0 {
			return nil, fmt.Errorf("%w: a padded frame without octets", errHTTP)
		}
		pad, p = int(p[0]), p[1:]
	}
	skip := 0
	if priority {
		skip = 5
	}
	if len(p) < pad+skip {
		return nil, fmt.Errorf("%w: padding longer than its frame", errHTTP)
	}
	return p[skip : len(p)-pad], nil
}

// settings takes over the server's limits.
func (h *httpsChannel) settings(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ; len(p) >= 6; p = p[6:] {
		v := binary.BigEndian.Uint32(p[2:])
		switch binary.BigEndian.Uint16(p) {
		case settingStreams:
			h.most = int(min(v, mostHeaders))
		case settingWindow:
			h.initial = int64(v)
		}
	}
	h.changed.Broadcast()
}

// reply writes a frame that a received one asks for. The reader does not wait for it, so a server
// that asks on and reads nothing would fill the memory.
func (h *httpsChannel) reply(frame []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owed += len(frame); h.owed > mostOwed {
		return errors.New("the server asks for replies and reads none")
	}
	if h.out = append(h.out, frame...); h.writing {
		return nil
	}
	go func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.flush() != nil {
			_ = h.conn.Close() // its reader ends
		}
	}()
	return nil
}

// deliver adds to the body of a stream, and returns it when it is complete. An answer with the id
// of another stream's query is returned with an id that nothing waits for: it must not count.
func (h *httpsChannel) deliver(id uint32, body []byte, end bool) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.streams[id]
	if s == nil {
		return nil, nil // reset, or never opened
	}
	if len(s.body)+len(body) > 1<<16 {
		return nil, fmt.Errorf("%w: an answer of more than 65 536 octets", errHTTP)
	}
	s.body = append(s.body, body...)
	if !end {
		return nil, nil
	}
	delete(h.streams, id)
	h.changed.Broadcast()
	if s.body == nil {
		s.body = []byte{}
	}
	if len(s.body) >= 2 && binary.BigEndian.Uint16(s.body) != s.id {
		return s.body[:1], nil // too short for any answer
	}
	return s.body, nil
}

func (h *httpsChannel) close() error { return h.conn.Close() }

func (h *httpsChannel) abort() error { return abortConn(h.conn) }

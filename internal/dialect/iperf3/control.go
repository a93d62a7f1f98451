package iperf3

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// DefaultPort is the port of the control connection and of all data connections, TCP and UDP.
const DefaultPort = 5201

// state is one byte on the control connection.
type state int8

// The states that are transmitted. The program has others for internal use.
const (
	testStart       state = 1  // all streams are open
	testRunning     state = 2  // start sending; follows at once
	testEnd         state = 4  // from the client, like clientTerminate and iperfDone
	paramExchange   state = 9  // send me your parameters
	createStreams   state = 10 // open your streams; the server is waiting
	serverTerminate state = 11 // the server was stopped
	clientTerminate state = 12 // the client was stopped
	exchangeResults state = 13 // send me your results, then read mine
	displayResults  state = 14 // results are complete
	iperfDone       state = 16 // both may close
	accessDenied    state = -1 // busy with another test
	serverError     state = -2 // followed by a code of the program and an errno, 4 bytes each
)

// String names a state as the program does.
func (s state) String() string {
	name, ok := map[state]string{
		testStart: "TEST_START", testRunning: "TEST_RUNNING", testEnd: "TEST_END", paramExchange: "PARAM_EXCHANGE",
		createStreams: "CREATE_STREAMS", serverTerminate: "SERVER_TERMINATE", clientTerminate: "CLIENT_TERMINATE",
		exchangeResults: "EXCHANGE_RESULTS", displayResults: "DISPLAY_RESULTS", iperfDone: "IPERF_DONE",
		accessDenied: "ACCESS_DENIED", serverError: "SERVER_ERROR",
	}[s]
	if !ok {
		return fmt.Sprintf("state %d", int8(s))
	}
	return name
}

// cookieBytes is the length of a cookie: 36 characters and a NUL.
const cookieBytes = 37

// cookie identifies one test at both ends.
type cookie [cookieBytes]byte

// newCookie returns a random cookie of the letters that the program uses, those of RFC 4648 base 32
// in lower case.
func newCookie() cookie {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	var c cookie
	// Read never fails (Go 1.24): a system without entropy ends the program.
	_, _ = rand.Read(c[:])
	for i := range c[:cookieBytes-1] {
		c[i] = letters[c[i]%byte(len(letters))]
	}
	c[cookieBytes-1] = 0
	return c
}

// mayBeCookie reports whether head may be the beginning of a cookie: up to 36 printable characters
// without blanks, followed only by NULs. Versions before 3.2 used a host name and the time, so the
// alphabet cannot be narrower.
func mayBeCookie(head []byte) bool {
	ended := false
	for i, b := range head[:min(len(head), cookieBytes)] {
		switch {
		case b == 0 && i > 0:
			ended = true
		case ended || b <= ' ' || b > '~' || i == cookieBytes-1:
			return false
		}
	}
	return true
}

// strangerError reports a peer that speaks another protocol.
type strangerError struct {
	Head []byte // the first bytes that it sent
}

func (e *strangerError) Error() string {
	return fmt.Sprintf("not iperf3: the other end speaks %s", wire.Dialect(e.Head))
}

// readCookie reads the first bytes of a client. It returns a *strangerError at the first byte that
// cannot belong to a cookie, because a client of another protocol may wait for an answer.
func readCookie(r io.Reader) (cookie, error) {
	// One more read may reveal more about a stranger than a cookie's length; wire.Dialect examines
	// the first 64 bytes.
	var head [64]byte
	n := 0
	for n < cookieBytes {
		// Not one byte more than the cookie: the payload of a stream follows it.
		k, err := r.Read(head[n:cookieBytes])
		n += k
		if !mayBeCookie(head[:n]) {
			return cookie{}, &strangerError{head[:n]}
		}
		if err != nil && n < cookieBytes {
			if n == 0 || !errors.Is(err, io.EOF) {
				return cookie{}, fmt.Errorf("read cookie: %w", err)
			}
			return cookie{}, &strangerError{head[:n]}
		}
	}
	return cookie(head[:cookieBytes]), nil
}

// Bounds of JSON messages. The program of version 3.18 refuses parameters over 8 KiB. Results have
// some 300 bytes per stream, of at most 256 streams, and with --get-server-output the text of a
// whole test.
const (
	maxParamsBytes        = 8 << 10
	maxClientResultsBytes = 256 << 10
	maxServerResultsBytes = 16 << 20
)

// control is one end of a control connection. Every call has its own timeout, which also bounds a
// message that comes byte by byte.
type control struct {
	conn net.Conn
	done <-chan struct{} // closed when nothing more is to be read; nil: never
}

// readBy sets the deadline of the next read.
func (c control) readBy(within time.Duration) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	// The goroutine that closes done also sets a past deadline, which the line above may just have
	// overwritten.
	select {
	case <-c.done:
		return c.conn.SetReadDeadline(time.Unix(1, 0))
	default:
		return nil
	}
}

// writeState sends one state.
func (c control) writeState(s state, within time.Duration) error {
	if err := c.write([]byte{byte(s)}, within); err != nil {
		return fmt.Errorf("send %s: %w", s, err)
	}
	return nil
}

// readState reads one state; io.EOF means that the connection was closed between two messages.
func (c control) readState(within time.Duration) (state, error) {
	if err := c.readBy(within); err != nil {
		return 0, fmt.Errorf("read state: %w", err)
	}
	var b [1]byte
	if _, err := io.ReadFull(c.conn, b[:]); err != nil {
		return 0, fmt.Errorf("read state: %w", err)
	}
	return state(b[0]), nil
}

// writeMessage sends a length and the JSON body.
func (c control) writeMessage(body []byte, within time.Duration) error {
	// One write makes one segment if it fits: TCP_NODELAY is set.
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	return c.write(append(out, body...), within)
}

// readMessage reads a message of at most limit bytes. Every byte lengthens the time, by the pace of
// a path that is slower than any in use: results of many streams take a minute over 64 kb/s.
func (c control) readMessage(limit int, within time.Duration) ([]byte, error) {
	return readMessage(&paced{control: c, began: time.Now(), within: within}, limit)
}

// paced reads a message whose bytes earn time.
type paced struct {
	control
	began  time.Time
	within time.Duration
	moved  int
}

// by returns the time that is left, of which the bytes so far have earned a part.
func (p *paced) by() time.Duration {
	earned := time.Duration(float64(p.moved) / wire.LeastPace * float64(time.Second))
	return time.Until(p.began.Add(p.within + min(earned, wire.MostForMessage)))
}

func (p *paced) Read(b []byte) (int, error) {
	if err := p.readBy(p.by()); err != nil {
		return 0, err
	}
	n, err := p.conn.Read(b)
	p.moved += n
	return n, err
}

func readMessage(r io.Reader, limit int) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("length: %w", err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if int64(n) > int64(limit) {
		return nil, fmt.Errorf("length: %d bytes are more than %d", n, limit)
	}
	// ReadAll allocates only for bytes that arrive: a claimed length alone costs nothing.
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, err
	}
	if len(body) < int(n) {
		return nil, fmt.Errorf("%d of %d bytes: %w", len(body), n, io.ErrUnexpectedEOF)
	}
	return body, nil
}

// writeError sends a client the reason why its test ends. Best effort: the client may be gone.
func (c control) writeError(code serverCode) {
	out := binary.BigEndian.AppendUint32([]byte{0xfe}, uint32(code)) // serverError
	_ = c.write(binary.BigEndian.AppendUint32(out, 0), time.Second)  // no errno: this server decided
}

// readError reads the numbers after serverError.
func (c control) readError(within time.Duration) (serverCode, int32, error) {
	var b [8]byte
	if err := c.readBy(within); err != nil {
		return 0, 0, err
	}
	if _, err := io.ReadFull(c.conn, b[:]); err != nil {
		return 0, 0, fmt.Errorf("read server error: %w", err)
	}
	return serverCode(binary.BigEndian.Uint32(b[:])), int32(binary.BigEndian.Uint32(b[4:])), nil
}

// write sends bytes, which earn time as in readMessage: a piece at a time, because a write shows
// no progress.
func (c control) write(b []byte, within time.Duration) error {
	p := paced{control: c, began: time.Now(), within: within}
	for piece := range slices.Chunk(b, max(1, int(wire.LeastPace*within.Seconds()))) {
		if err := c.conn.SetWriteDeadline(time.Now().Add(p.by())); err != nil {
			return err
		}
		n, err := c.conn.Write(piece)
		if err != nil {
			return err
		}
		p.moved += n
	}
	return nil
}

// serverCode is an error of the program (iperf_api.h) as it follows serverError. The program's
// client prints a sentence for each.
type serverCode int32

// The codes that this server sends, and those of other servers that are most useful to know.
const (
	codeDuration    serverCode = 5   // IEDURATION
	codeStreams     serverCode = 6   // IENUMSTREAMS
	codeBlock       serverCode = 7   // IEBLOCKSIZE
	codeBuffer      serverCode = 8   // IEBUFSIZE
	codeOmit        serverCode = 12  // IEOMIT
	codeNoSCTP      serverCode = 18  // IENOSCTP
	codeDatagram    serverCode = 20  // IEUDPBLOCKSIZE
	codeTOS         serverCode = 21  // IEBADTOS
	codeTotalRate   serverCode = 27  // IETOTALRATE
	codeParams      serverCode = 114 // IERECVPARAMS
	codeResults     serverCode = 117 // IERECVRESULTS
	codeDenied      serverCode = 121 // IEACCESSDENIED
	codeWindow      serverCode = 130 // IESETWINDOWSIZE
	codeProtocol    serverCode = 131 // IEPROTOCOL
	codeCongestion  serverCode = 134 // IESETCONGESTION
	codeAuth        serverCode = 142 // IEAUTHTEST
	codeStreamSetup serverCode = 200 // IECREATESTREAM
	codeStreamWrite serverCode = 205 // IESTREAMWRITE
	codeStreamRead  serverCode = 206 // IESTREAMREAD
)

// String returns the meaning of a code.
func (c serverCode) String() string {
	text, ok := map[serverCode]string{
		codeDuration:    "the test is longer than the server allows",
		codeStreams:     "too many streams",
		codeBlock:       "block size out of range",
		codeBuffer:      "socket buffer too large",
		codeOmit:        "omitted time out of range",
		codeNoSCTP:      "SCTP is not supported",
		codeDatagram:    "datagram size out of range",
		codeTOS:         "type of service out of range",
		codeTotalRate:   "the total rate is over the server's limit",
		codeParams:      "the server does not understand the parameters",
		codeResults:     "the server does not understand the results",
		codeDenied:      "the server is busy",
		codeWindow:      "window size cannot be set",
		codeProtocol:    "no such protocol",
		codeCongestion:  "congestion control cannot be set at the server",
		codeAuth:        "the server asks for a user and a password",
		codeStreamSetup: "a stream cannot be opened",
		codeStreamWrite: "a stream of the server cannot send",
		codeStreamRead:  "a stream of the server cannot receive",
	}[c]
	if !ok {
		return fmt.Sprintf("error %d of iperf3", int32(c))
	}
	return text
}

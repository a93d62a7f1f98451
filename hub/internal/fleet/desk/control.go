package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/hub/internal/fleet/selection"
	"github.com/linerate/linerate/internal/kernel/incoming"
)

// What an administrator can ask for.
const (
	DoStatus   = "status"
	DoHosts    = "hosts"
	DoAsk      = "ask"
	DoFetch    = "fetch"
	DoInvite   = "invite"
	DoWithdraw = "withdraw"
	DoApprove  = "approve"
	DoRemove   = "remove"
)

// Request is what an administrator asks for.
type Request struct {
	Do        string            `json:"do"`
	Selection string            `json:"selection,omitempty"`
	IDs       []string          `json:"ids,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	After     string            `json:"after,omitempty"` // begins a page of hosts
	Limit     int               `json:"limit,omitempty"`
	Verb      string            `json:"verb,omitempty"`
	Args      []string          `json:"args,omitempty"`
	WithinMS  int64             `json:"within_ms,omitempty"`
	Document  string            `json:"document,omitempty"`
	Groups    []string          `json:"groups,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Uses      int               `json:"uses,omitempty"`
	TTLMS     int64             `json:"ttl_ms,omitempty"`
	Approve   bool              `json:"approve,omitempty"`
	Mesh      *MeshRequest      `json:"mesh,omitempty"`

	// About rollouts.
	Rollout string          `json:"rollout,omitempty"`
	Kind    conduct.Kind    `json:"kind,omitempty"` // DoAgain: resume, persist or undo
	Change  *conduct.Change `json:"change,omitempty"`
	Timing  *rollout.Timing `json:"timing,omitempty"`
	ValidMS int64           `json:"valid_ms,omitempty"` // how long the signatures are to be valid
	Signed  *Signed         `json:"signed,omitempty"`
	By      string          `json:"by,omitempty"` // a person
}

// Item is a document of a host that a fetch returns before its own document.
type Item struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Hash string `json:"hash"`
	Data []byte `json:"data"`
}

// frame is one line of an answer: any number of items, then a document or an error.
type frame struct {
	Item     *Item           `json:"item,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
	Error    string          `json:"error,omitempty"`
	Usage    bool            `json:"usage,omitempty"` // with Error: the request was wrong
}

// UsageError is a request that cannot be served as it is.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// ErrNoHub reports that no hub with a fleet runs here.
var ErrNoHub = errors.New("no hub with a fleet runs here")

const (
	// longestRequest has room for the signed orders of a fleet: three for each host, of some 700
	// bytes.
	longestRequest = 128 << 20
	requestWithin  = 30 * time.Second
	writeWithin    = 30 * time.Second // for each part of an answer
	writePart      = 64 << 10
)

// frames writes the lines of an answer.
type frames struct {
	c   net.Conn
	err error // of a line that was broken off: nothing can follow it
}

// send writes a line. The time is that of a part, because a line may have 40 MB, and its reader
// little CPU time, or a pager behind it.
func (w *frames) send(f frame) error {
	if w.err != nil {
		return w.err
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(append(b, '\n'), writePart) {
		if w.err = w.c.SetWriteDeadline(time.Now().Add(writeWithin)); w.err == nil {
			_, w.err = w.c.Write(part)
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// listenControl opens the administrator's socket.
func listenControl(dir string) (*net.UnixListener, error) {
	path := Socket(dir)
	// The register's lock is held: a socket that is there belongs to no process.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket of the fleet: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket of the fleet: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("socket of the fleet: %w", err), l.Close())
	}
	return l, nil
}

// serveControl answers administrators until the context ends.
func (d *Desk) serveControl(ctx context.Context) error {
	l := d.socket
	defer incoming.CloseWith(ctx, func() { _ = l.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	report := incoming.Log(func(sentence string) { d.log.Warn("fleet: " + sentence) })
	err := incoming.Connections(ctx, l.AcceptUnix, report, func(c *net.UnixConn) {
		all.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			d.serveOne(ctx, c)
		})
	})
	if err != nil {
		return fmt.Errorf("socket of the fleet: %w", err)
	}
	return nil
}

func (d *Desk) serveOne(ctx context.Context, c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(requestWithin)) != nil {
		return
	}
	var q Request
	send := (&frames{c: c}).send
	line, err := bufio.NewReader(io.LimitReader(c, longestRequest)).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &q) != nil || c.SetReadDeadline(time.Time{}) != nil {
		_ = send(frame{Error: "not a request", Usage: true}) // a client that has gone does not need it
		return
	}
	// A client sends nothing after its request. When its end of the connection is closed it has gone,
	// and its work ends: a mesh of a fleet takes minutes, and no other can begin meanwhile.
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	go func() {
		_, _ = io.Copy(io.Discard, c) // until it is closed, at this end or the other
		gone()
	}()
	doc, err := d.Do(ctx, q, func(i Item) error { return send(frame{Item: &i}) })
	var b []byte
	if err == nil {
		b, err = json.Marshal(doc)
	}
	if err != nil {
		_, usage := errors.AsType[UsageError](err)
		_, mistake := errors.AsType[*selection.Error](err)
		_ = send(frame{Error: err.Error(), Usage: usage || mistake})
		return
	}
	_ = send(frame{Document: b})
}

// Call asks the desk whose directory is dir, and reads its document into doc. item receives the
// items of a fetch. A hub that does not run is ErrNoHub.
func Call(ctx context.Context, dir string, q Request, doc any, item func(Item) error) error {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", Socket(dir))
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("ask the hub: %w", err)
		}
		return fmt.Errorf("%w (%s): %w", ErrNoHub, dir, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if _, err := c.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("ask the hub: %w", err)
	}
	in := json.NewDecoder(bufio.NewReaderSize(c, 1<<16))
	for {
		var f frame
		err := in.Decode(&f)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("ask the hub: %w", err)
		case f.Error != "" && f.Usage:
			return UsageError{errors.New(f.Error)}
		case f.Error != "":
			return errors.New(f.Error)
		case f.Item != nil && item != nil:
			if err := item(*f.Item); err != nil {
				return err
			}
		case f.Document != nil:
			return json.Unmarshal(f.Document, doc)
		}
	}
}

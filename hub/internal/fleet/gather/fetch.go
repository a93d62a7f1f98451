package gather

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/message"
)

// The errors of a fetch. A document that the host does not have is fs.ErrNotExist.
var (
	ErrAbsent  = errors.New("the host is not connected")
	ErrSilent  = errors.New("the host does not answer")
	ErrChanged = errors.New("the document changed while it was fetched")
	errDamaged = errors.New("the document came damaged")
	errLarge   = errors.New("the document has more")
)

// Bounds of a fetch.
const (
	atATime      = 64               // hosts
	partWithin   = 20 * time.Second // until the next part
	mostUnpacked = 32 << 20
	attempts     = 3
	packing      = 4 << 10 // what packing may add to bytes that do not get shorter
)

// Fetched is a document of one host.
type Fetched struct {
	ID   string
	Hash string
	Data []byte // nil if Same
	Same bool   // the document that the hub has
	Err  error
}

// Fetch fetches a document from each host, and calls each with every result, one at a time and in
// no order. have returns the hash of the document that the hub has already, or nothing; it may be
// nil.
func (a *Asker) Fetch(ctx context.Context, document string, ids []string, have func(id string) string,
	each func(Fetched)) error {
	work, results := make(chan string), make(chan Fetched)
	var all sync.WaitGroup
	for range min(atATime, len(ids)) {
		all.Go(func() {
			for id := range work {
				h := ""
				if have != nil {
					h = have(id)
				}
				results <- a.One(ctx, document, id, h)
			}
		})
	}
	go func() {
		defer close(results)
		defer all.Wait()
		defer close(work)
		for _, id := range ids {
			select {
			case work <- id:
			case <-ctx.Done():
				return
			}
		}
	}()
	for f := range results {
		each(f)
	}
	return ctx.Err()
}

// One fetches a document from one host.
func (a *Asker) One(ctx context.Context, document, id, have string) Fetched {
	return a.Small(ctx, document, id, have, mostUnpacked)
}

// Small is One for a document of at most this number of bytes, packed and unpacked: what one host
// sends must not take the memory that many need.
func (a *Asker) Small(ctx context.Context, document, id, have string, most int) Fetched {
	var f Fetched
	for range attempts {
		f = a.one(ctx, document, id, have, most)
		// Changed: begin again. Silent or absent: the host may just be on its way back.
		if f.Err == nil || errors.Is(f.Err, fs.ErrNotExist) || errors.Is(f.Err, ErrAbsent) ||
			errors.Is(f.Err, errLarge) || ctx.Err() != nil {
			break
		}
	}
	if f.Err != nil {
		f.Err = fmt.Errorf("fetch %s of %s: %w", document, id, f.Err)
	}
	return f
}

func (a *Asker) one(ctx context.Context, document, id, have string, most int) Fetched {
	f := Fetched{ID: id, Err: ctx.Err()}
	if f.Err != nil { // the client has gone
		return f
	}
	came := make(chan bus.Message, 2*message.Credit)
	token, end := a.wait(func(from string, m bus.Message) {
		if from != id {
			return // the token of one host, used by another
		}
		m.Data = bytes.Clone(m.Data)
		select {
		case came <- m:
		default: // more than was asked for
		}
	})
	defer end()
	ask := func(q message.Fetch) error {
		q.Document, q.Token = document, token
		b, err := json.Marshal(q)
		if err != nil {
			return err
		}
		return a.conn.Send(bus.ToHost(id, message.KindFetch), bus.FromHost(id, message.Reply(token)), b)
	}
	if f.Err = ask(message.Fetch{Have: have, Count: message.Credit}); f.Err != nil {
		return f
	}
	var whole bytes.Buffer
	next, asked := 0, message.Credit // parts: the next one, and the first not asked for
	timer := time.NewTimer(partWithin)
	defer timer.Stop()
	for {
		var m bus.Message
		select {
		case <-ctx.Done():
			f.Err = ctx.Err()
			return f
		case <-timer.C:
			f.Err = ErrSilent
			return f
		case m = <-came:
		}
		timer.Reset(partWithin)
		if m.Absent {
			f.Err = ErrAbsent
			return f
		}
		p, err := message.DecodePart(m.Data)
		switch {
		case err != nil:
			f.Err = err
		case p.Error != "" && p.Absent:
			f.Err = fmt.Errorf("%.300q: %w", p.Error, fs.ErrNotExist)
		case p.Error != "" && p.Hash != "":
			f.Err = ErrChanged
		case p.Error != "":
			f.Err = fmt.Errorf("answer of the host: %.300q", p.Error)
		case p.Same && have != "":
			f.Hash, f.Same = have, true
			return f
		case p.Number != next || p.Parts == 0:
			f.Err = errDamaged // a part is lost: the bus delivers in order
		case next > 0 && p.Hash != f.Hash:
			f.Err = ErrChanged
		}
		if f.Err != nil {
			return f
		}
		f.Hash = p.Hash
		if whole.Len()+len(p.Data) > most+packing {
			f.Err = fmt.Errorf("%w than %d bytes", errLarge, most)
			return f
		}
		whole.Write(p.Data)
		if next++; next == p.Parts {
			f.Data, f.Err = unpack(whole.Bytes(), p.Hash, most)
			return f
		}
		if next == asked {
			asked += message.Credit
			if f.Err = ask(message.Fetch{Hash: f.Hash, From: next, Count: message.Credit}); f.Err != nil {
				return f
			}
		}
	}
}

// unpack returns the document, and compares its hash.
func unpack(b []byte, hash string, most int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	out, err := io.ReadAll(io.LimitReader(z, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	case len(out) > most:
		return nil, fmt.Errorf("%w than %d bytes", errLarge, most)
	case inventory.Hash(out) != hash:
		return nil, errDamaged
	}
	return out, nil
}

package desk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowReaders writes a document to a client that takes minutes for it, and one to a client that
// stops in the middle: the first has all of it, and to the second goes nothing more, which would be
// read as a part of the document.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		document := frame{Item: &Item{ID: "A", Data: bytes.Repeat([]byte("x"), 1<<20)}}
		hub, client := net.Pipe()
		sent := make(chan error, 1)
		go func() { sent <- errors.Join((&frames{c: hub}).send(document), hub.Close()) }()
		var got bytes.Buffer
		for began := time.Now(); ; time.Sleep(writeWithin / 2) { // of the bubble
			if _, err := io.CopyN(&got, client, writePart); err != nil {
				if t.Logf("read %d bytes in %v: %v", got.Len(), time.Since(began), err); !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				break
			}
		}
		var f frame
		if err := json.Unmarshal(got.Bytes(), &f); err != nil || !bytes.Equal(f.Item.Data, document.Item.Data) {
			t.Errorf("%d bytes came: %v", got.Len(), err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}

		hub, client = net.Pipe()
		w := &frames{c: hub}
		go func() { sent <- w.send(document) }()
		if _, err := io.CopyN(io.Discard, client, writePart); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a client that stops: %v", err)
		}
		go func() { sent <- errors.Join(w.send(frame{Error: "after that"}), hub.Close()) }()
		if b, err := io.ReadAll(client); len(b) > 0 || err != nil {
			t.Errorf("in the middle of a document comes %q, %v", b, err)
		}
		if err := <-sent; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an answer after a broken one: %v", err)
		}
	})
}

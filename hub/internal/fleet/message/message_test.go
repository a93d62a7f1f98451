package message

import (
	"bytes"
	"testing"
)

// FuzzDecodePart: what is read is within its bounds, and is the same after a journey.
func FuzzDecodePart(f *testing.F) {
	for _, p := range []Part{{Hash: "ab", Bytes: 5, Parts: 1, Data: []byte("a\nb")},
		{Error: "no", Absent: true}, {Same: true}} {
		b, err := p.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("{}"))
	f.Add([]byte(`{"number":-1}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodePart(b)
		if err != nil {
			return
		}
		if p.Number < 0 || p.Parts > MostParts || len(p.Data) > PartBytes {
			t.Errorf("out of bounds: %+v", p)
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		q, err := DecodePart(again)
		if err != nil || !bytes.Equal(p.Data, q.Data) || p.Hash != q.Hash || p.Number != q.Number {
			t.Errorf("%+v after a journey: %+v, %v", p, q, err)
		}
	})
}

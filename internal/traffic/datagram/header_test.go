package datagram

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNativeHeaderKeepsTheMark(t *testing.T) {
	for _, m := range []Mark{
		{},
		{Sequence: 1, Sent: time.Nanosecond, Measured: true},
		{Sequence: sequenceMask, Sent: 1<<63 - 1, End: true},
		{Sequence: 12345678901, Sent: 90 * 24 * time.Hour, Measured: true, End: true},
	} {
		p := make([]byte, NativeHeader{}.Bytes())
		NativeHeader{}.Put(p, m)
		got, ok := NativeHeader{}.Parse(p)
		if d := cmp.Diff(m, got); !ok || d != "" {
			t.Errorf("ok %v (-want +got):\n%s", ok, d)
		}
	}
}

func TestNativeHeaderRefuses(t *testing.T) {
	good := make([]byte, 16)
	NativeHeader{}.Put(good, Mark{Sequence: 7})
	for name, change := range map[string]func(p []byte) []byte{
		"nothing":        func([]byte) []byte { return nil },
		"short":          func(p []byte) []byte { return p[:15] },
		"other magic":    func(p []byte) []byte { p[0] ^= 1; return p },
		"unknown flag":   func(p []byte) []byte { p[1] = 4; return p },
		"negative clock": func(p []byte) []byte { p[8] = 0x80; return p },
	} {
		if m, ok := (NativeHeader{}).Parse(change(append([]byte(nil), good...))); ok {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// FuzzNativeHeader checks that Put writes again what Parse has read.
func FuzzNativeHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 16))
	good := make([]byte, 20)
	NativeHeader{}.Put(good, Mark{Sequence: 1 << 40, Sent: time.Hour, Measured: true})
	f.Add(good)
	f.Fuzz(func(t *testing.T, p []byte) {
		m, ok := NativeHeader{}.Parse(p)
		if !ok {
			return
		}
		again := make([]byte, 16)
		NativeHeader{}.Put(again, m)
		if d := cmp.Diff(p[:16], again); d != "" {
			t.Fatalf("%+v (-parsed +put):\n%s", m, d)
		}
	})
}

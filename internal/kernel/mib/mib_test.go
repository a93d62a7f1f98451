package mib

import (
	"errors"
	"io/fs"
	"testing"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		kind uint32
		raw  string
		text string
	}{
		{typeInt, "\xff\xff\xff\xff", "-1"}, {typeUint, "\xff\xff\xff\xff", "4294967295"},
		{typeUlong, "\x00\x00\x20\x00\x00\x00\x00\x00", "2097152"}, {typeS64, "\xfe\xff\xff\xff\xff\xff\xff\xff", "-2"},
		{typeU8, "\x80", "128"}, {typeS8, "\x80", "-128"}, {typeU16, "\x01\x02", "513"}, {typeS16, "\xff\xff", "-1"},
		{typeString, "cubic\x00rest", "cubic"},
	} {
		got, err := decode(c.kind|flagWritable, []byte(c.raw))
		if got != c.text || err != nil {
			t.Errorf("decode %x %q: %q, %v; want %q", c.kind, c.raw, got, err, c.text)
		}
		back, err := encode(c.kind, c.text)
		if c.kind != typeString && (string(back) != c.raw || err != nil) {
			t.Errorf("encode %x %q: %q, %v", c.kind, c.text, back, err)
		}
	}
	if got, err := decode(typeLong, make([]byte, 24)); got != "0 0 0" || err != nil {
		t.Errorf("three numbers: %q, %v", got, err)
	}
	for _, raw := range [][]byte{nil, {1, 2, 3}} {
		if got, err := decode(typeInt, raw); !errors.Is(err, ErrOpaque) {
			t.Errorf("decode %v: %q, %v", raw, got, err)
		}
	}
	for _, bad := range []string{"", "x", "1 2", "4294967296", "-1"} {
		if _, err := encode(typeUint, bad); !errors.Is(err, ErrValue) {
			t.Errorf("encode %q: %v", bad, err)
		}
	}
}

func TestDump(t *testing.T) {
	d := ParseDump("kern.ostype: FreeBSD\nkern.version: FreeBSD 14\n\nkern.clockrate: { hz = 100 }\nkern.msgbuf: \n" +
		"kern.sched.topology_spec: <groups>\n <group level=\"1\">\n</groups>\nnet.inet.tcp.rfc1323: 1\ndev.em.0.itr: 488\n")
	if n, err := d.Get("net.inet.tcp.rfc1323"); n.Value != "1" || !n.Writable || err != nil {
		t.Errorf("%+v, %v", n, err)
	}
	for _, name := range []string{"kern.clockrate", "kern.sched.topology_spec"} {
		if _, err := d.Get(name); !errors.Is(err, ErrOpaque) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, err := d.Names("dev.em"); len(names) != 1 || err != nil {
		t.Errorf("%v, %v", names, err)
	}
	if err := d.Set("dev.em.0.itr", "x"); !errors.Is(err, ErrValue) {
		t.Errorf("%v", err)
	}
	d.Mark("dev.em.0.itr", false, true)
	if err := d.Set("dev.em.0.itr", "1"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
	d.Remove("dev.em.0")
	if _, err := d.Names("dev.em"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func FuzzDump(f *testing.F) {
	f.Add("kern.ostype: FreeBSD\nkern.x: { a }\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := ParseDump(text)
		for _, name := range d.order {
			_, _ = d.Get(name)
		}
	})
}

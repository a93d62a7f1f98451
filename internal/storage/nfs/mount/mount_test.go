package mount

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestSplitSource(t *testing.T) {
	for _, c := range []struct{ source, server, export string }{
		{"fs.example.com:/data", "fs.example.com", "/data"}, {"192.0.2.1:/", "192.0.2.1", "/"},
		{"[2001:db8::1]:/a b", "2001:db8::1", "/a b"}, {"fs:/a:/b", "fs", "/a:/b"},
		{"/mnt/data", "", ""}, {"fs", "", ""}, {":/x", "", ""}, {"[]:/x", "", ""}, {"a b:/x", "", ""}, {"fs:data", "", ""},
		{"[zz]:/x", "", ""}, {"[::1:/x", "", ""}, {"fs:/a\nb", "", ""},
	} {
		server, export, err := SplitSource(c.source)
		if server != c.server || export != c.export || (err != nil) != (c.server == "") ||
			err != nil && !errors.Is(err, ErrSource) {
			t.Errorf("%s: %q %q %v", c.source, server, export, err)
		}
	}
}

func TestOptions(t *testing.T) {
	var s Spec
	if err := ParseOptions("vers=4.1, rsize=65536,wsize=32768,nconnect=4,proto=tcp,sec=krb5,ro", &s); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Options(), "vers=4.1,proto=tcp,rsize=65536,wsize=32768,nconnect=4,sec=krb5,ro"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	kernel := s.kernelText(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"))
	if !strings.HasPrefix(kernel, "addr=192.0.2.1,nosharecache,soft,") ||
		!strings.Contains(kernel, "clientaddr=192.0.2.2,") {
		t.Error(kernel)
	}
	for _, bad := range []string{"rsize=x", "hard", "addr=1.2.3.4", "sharecache", "timeo=9"} {
		if err := ParseOptions(bad, &Spec{}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// The unit's names are those that systemd-escape --path --suffix=mount prints (systemd 252).
func TestPersist(t *testing.T) {
	s := Spec{Source: "fs:/data dir", Version: "4.2", ReadSize: 262144, Connections: 4, ReadAhead: 8 << 20}
	p := s.Persist("/mnt/data-1 x")
	for what, pair := range map[string][2]string{
		"fstab":  {p.Fstab, `fs:/data\040dir /mnt/data-1\040x nfs vers=4.2,rsize=262144,nconnect=4,_netdev 0 0`},
		"autofs": {p.Autofs, `"data-1 x" -fstype=nfs,vers=4.2,rsize=262144,nconnect=4 "fs:/data dir"`},
		"unit":   {p.Unit, `mnt-data\x2d1\x20x.mount`},
		"nfs":    {p.NFSConf, "[nfsrahead]\n/mnt/data-1 x=8192\n"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
	if !strings.Contains(p.Systemd, "What=fs:/data dir\nWhere=/mnt/data-1 x\nType=nfs\nOptions=vers=4.2,") {
		t.Error(p.Systemd)
	}
	for path, want := range map[string]string{"/": "-", "/a/b": "a-b", "/.x": `\x2ex`, "/a.b": "a.b", "/é": `\xc3\xa9`} {
		if got := unitName(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Ping has an error of its own for a silent server, for another service, and for a closed port.
func TestPing(t *testing.T) {
	serve := func(answer func(net.Conn)) int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go answer(c)
			}
		}()
		return l.Addr().(*net.TCPAddr).Port
	}
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	// The reply of nfsd to a NULL call, with the id of the call: accepted, no verifier, success.
	good := serve(func(c net.Conn) {
		b := make([]byte, 44)
		for {
			if _, err := io.ReadFull(c, b); err != nil {
				return
			}
			reply := append([]byte{0x80, 0, 0, 24}, b[4:8]...)
			reply = append(reply, 0, 0, 0, 1)
			_, _ = c.Write(append(reply, make([]byte, 16)...))
		}
	})
	silent := serve(func(net.Conn) { <-hang })
	other := serve(func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.2 and some more text")) })
	ends := serve(func(c net.Conn) { _ = c.Close() })
	for _, c := range []struct {
		port int
		want error
	}{{good, nil}, {other, ErrNotNFS}} {
		e, err := Ping(t.Context(), "127.0.0.1", c.port, 3, time.Minute)
		if !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
		if c.want == nil && (e.RoundTrip <= 0 || e.Server.String() != "127.0.0.1" || e.Client != e.Server) {
			t.Errorf("%+v", e)
		}
	}
	if _, err := Ping(t.Context(), "127.0.0.1", silent, 3, 50*time.Millisecond); !errors.Is(err, ErrSilent) {
		t.Errorf("silent: %v", err)
	}
	if _, err := Ping(t.Context(), "127.0.0.1", ends, 3, time.Minute); err == nil || errors.Is(err, ErrSilent) {
		t.Errorf("closed at once: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Ping(ctx, "127.0.0.1", silent, 3, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func FuzzSplitSource(f *testing.F) {
	f.Add("fs:/x")
	f.Add("[::1]:/x")
	f.Fuzz(func(t *testing.T, s string) {
		server, export, err := SplitSource(s)
		if err == nil && (server == "" || !strings.HasPrefix(export, "/")) {
			t.Errorf("%q: %q %q", s, server, export)
		}
	})
}

package talkers

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/nl/sockdiag"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// simulated is a host with connections and a clock of its own.
type simulated struct {
	sockets []sockdiag.Socket
	err     error
	at      time.Time
	looked  []map[uint32]bool
}

func (h *simulated) meter(owners map[uint32]Process, hidden bool) *Meter {
	return &Meter{
		list: func(visit func(*sockdiag.Socket) bool) error {
			for i := range h.sockets {
				if !visit(&h.sockets[i]) {
					break
				}
			}
			return h.err
		},
		find: func(wanted map[uint32]bool) (map[uint32]Process, bool, error) {
			h.looked = append(h.looked, wanted)
			return owners, hidden, nil
		},
		now: func() time.Time { return h.at },
	}
}

func socket(cookie uint64, inode uint32, acked, received, again uint64) sockdiag.Socket {
	return sockdiag.Socket{
		Cookie: cookie, Inode: inode, State: sockdiag.Established, Congestion: "cubic", SendQueue: 100,
		Local: netip.MustParseAddrPort("192.0.2.1:80"), Remote: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"),
			uint16(cookie)),
		Info: sys.TCPInfo{Length: bytesReceivedEnd, BytesAcked: acked, BytesReceived: received, BytesRetrans: again,
			RTTMicros: 1500},
	}
}

// TestMeter checks the rates over two seconds: of a connection that sends, one that receives, one
// that came meanwhile, and none of one that rests.
func TestMeter(t *testing.T) {
	h := &simulated{at: time.Unix(1000, 0), sockets: []sockdiag.Socket{
		socket(1, 11, 1000, 0, 0), socket(2, 12, 0, 5000, 0), socket(3, 13, 7, 7, 7)}}
	web := Process{PID: 7, Name: "web", Cgroup: "/system.slice/web.service"}
	m := h.meter(map[uint32]Process{11: web, 14: web}, false)
	if r, err := m.Take(); err != nil || len(r.Connections) != 0 {
		t.Fatalf("the first list: %+v, %v", r, err)
	}
	h.at = h.at.Add(2 * time.Second)
	h.sockets = []sockdiag.Socket{socket(1, 11, 3000, 0, 500), socket(2, 12, 0, 6000, 0), socket(3, 13, 7, 7, 7),
		socket(4, 14, 250, 0, 0)}
	r, err := m.Take()
	if err != nil {
		t.Fatal(err)
	}
	connection := func(p Process, remote uint16, x Traffic) Connection {
		return Connection{Process: p, Local: "192.0.2.1:80", Remote: fmt.Sprintf("192.0.2.2:%d", remote), Traffic: x,
			RTT: 0.0015, SendQueue: 100, Congestion: "cubic"}
	}
	want := []Connection{connection(web, 1, Traffic{Send: 8000, Again: 2000}),
		connection(Process{}, 2, Traffic{Receive: 4000}), connection(web, 4, Traffic{Send: 1000})}
	if diff := cmp.Diff(want, r.Connections); diff != "" {
		t.Errorf("connections (-want +got):\n%s", diff)
	}
	totals := []Total{{web, 2, Traffic{Send: 9000, Again: 2000}}, {Process{}, 1, Traffic{Receive: 4000}}}
	if diff := cmp.Diff(totals, r.Processes()); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	// Sockets that were looked for are not looked for again, also when no process holds them.
	h.at = h.at.Add(time.Second)
	h.sockets[0], h.sockets[1] = socket(1, 11, 4000, 0, 500), socket(2, 12, 0, 7000, 0)
	if r, err = m.Take(); err != nil || len(r.Connections) != 2 || r.Connections[0].Process != web {
		t.Errorf("the third list: %+v, %v", r, err)
	}
	if diff := cmp.Diff([]map[uint32]bool{{11: true, 12: true, 14: true}}, h.looked); diff != "" {
		t.Errorf("looked for (-want +got):\n%s", diff)
	}
}

// TestMeterCannotRead checks what a meter says of a host that hides something.
func TestMeterCannotRead(t *testing.T) {
	h := &simulated{at: time.Unix(1000, 0), sockets: []sockdiag.Socket{socket(1, 11, 0, 0, 0)}}
	m := h.meter(nil, true)
	if _, err := m.Take(); err != nil {
		t.Fatal(err)
	}
	h.at = h.at.Add(time.Second)
	h.sockets = []sockdiag.Socket{socket(1, 11, 1, 0, 0)}
	h.err = fmt.Errorf("list: %w", sockdiag.ErrLimit)
	r, err := m.Take()
	if err != nil || len(r.Connections) != 1 || len(r.Warnings) != 2 {
		t.Errorf("a long list and hidden processes: %+v, %v", r, err)
	}
	h.err = errors.ErrUnsupported
	if _, err := m.Take(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a kernel without sock_diag: %v", err)
	}
	h.err, h.sockets[0].Info.Length = nil, 104
	if _, err := m.Take(); err == nil {
		t.Error("a kernel before 4.1 has rates")
	}
}

// TestFind reads processes with sockets: one without any of those wanted, two that share one, and
// both versions of control groups.
func TestFind(t *testing.T) {
	link := func(to string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(to), Mode: 0o777 | 1<<27} }
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	proc := fstest.MapFS{
		"1/comm": file("init\n"),
		"9/fd/3": link("socket:[101]"), "9/comm": file("first\n"), "9/cgroup": file("0::/\n"),
		"80/fd/0": link("/dev/null"), "80/fd/5": link("socket:[102]"), "80/fd/6": link("socket:[101]"),
		"80/comm": file("web server\n"), "80/cgroup": file("0::/system.slice/web.service\n"),
		"700/fd/1": link("socket:[nonsense]"), "700/fd/2": link("socket:[103]"), "700/comm": file("old\n"),
		"700/cgroup": file("12:cpu:/x\n1:name=systemd:/user.slice\n"),
		"8000/fd/4":  link("socket:[999]"), "8000/comm": file("other\n"),
		"meminfo": file(""), "self": link("9"),
	}
	got, hidden, err := findBelow(proc, map[uint32]bool{101: true, 102: true, 103: true, 104: true})
	want := map[uint32]Process{101: {9, "first", ""}, 102: {80, "web server", "/system.slice/web.service"},
		103: {700, "old", "/user.slice"}}
	if diff := cmp.Diff(want, got); diff != "" || hidden || err != nil {
		t.Errorf("hidden %v, %v; (-want +got):\n%s", hidden, err, diff)
	}
	// With hidepid of proc(5), the processes of other users do not exist there.
	delete(proc, "1/comm")
	if got, hidden, err := findBelow(proc, map[uint32]bool{101: true, 104: true}); len(got) != 1 || !hidden || err != nil {
		t.Errorf("a /proc without process 1: %v, hidden %v, %v", got, hidden, err)
	}
}

package nfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/storage/nfs"
)

// recorded returns a host with a recorded mountstats and further files, name and content in turn.
func recorded(t *testing.T, file string, more ...string) *hostfs.Tree {
	t.Helper()
	entries := []hostfs.Entry{{Name: "proc/filesystems", Content: []byte("nodev\tnfs4\n")}}
	if file != "" {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, hostfs.Entry{Name: "proc/self/mountstats", Content: b})
	}
	for i := 0; i+1 < len(more); i += 2 {
		entries = append(entries, hostfs.Entry{Name: more[i], Content: []byte(more[i+1])})
	}
	tree, err := hostfs.Of(hostfs.NewMemory(entries))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func judged(t *testing.T, tree *hostfs.Tree) []nfs.Mount {
	t.Helper()
	all, err := nfs.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	var mounts []nfs.Mount
	for _, m := range all {
		mounts = append(mounts, nfs.Judge(tree, m, m.Age))
	}
	return mounts
}

// TestRecorded reads the files of others: where their calls wait, and the means of one procedure,
// which are sums of the file divided by its calls.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		file, path, first string
		waits             nfs.Station
		connections       int
		execution         float64 // mean seconds of the first procedure
		why               string
	}{
		{"node_exporter", "/mnt/nfs/test", "READ", nfs.Remote, 2, 79.407 / 1298, "waiting for a slot"},
		{"node_exporter", "/mnt/nfs/test-dupe", "READ", nfs.Remote, 1, 79.407 / 1298, ""},
		{"telegraf", "/NFS", "WRITE", nfs.Remote, 1, 0.707 / 700, "2 of 1300 requests were sent again"},
		{"telegraf", "/mnt", "READ", nfs.Server, 1, 8.2 / 9797, "quickest small procedure"},
		// 0.3 requests on average wait for the transport, so 1.2 s are for a slot of the session.
		{"kubernetes", "/var/lib/kubelet/pods/1c2215a7/volumes/node-red", "WRITE", nfs.Slots, 1, 411864.389 / 322308,
			"nconnect adds none"},
		{"rdma", "/data", "READ", nfs.Server, 2, 37927280.438 / 2654501510, ""},
	} {
		found := false
		for _, m := range judged(t, recorded(t, c.file)) {
			if m.Path != c.path {
				continue
			}
			found = true
			if m.Waits != c.waits || m.Connections != c.connections || !strings.Contains(strings.Join(m.Because, "\n"), c.why) {
				t.Errorf("%s %s: waits %s over %d connections, because %q; want %s, %d, %q", c.file, c.path, m.Waits,
					m.Connections, m.Because, c.waits, c.connections, c.why)
			}
			if len(m.Operations) == 0 || m.Operations[0].Operation != c.first ||
				m.Operations[0].Execution/c.execution < 0.9999 || m.Operations[0].Execution/c.execution > 1.0001 {
				t.Errorf("%s %s: first %+v; want %s with %g s", c.file, c.path, m.Operations, c.first, c.execution)
			}
			if m.ReadSize == 0 || len(m.Options) < 10 || m.Protocol == "" {
				t.Errorf("%s %s: rsize %d, options %q", c.file, c.path, m.ReadSize, m.Options)
			}
		}
		if !found {
			t.Errorf("%s: no mount %s", c.file, c.path)
		}
	}
}

// TestWrapped: a sum that the kernel let wrap is left out, and it is said.
func TestWrapped(t *testing.T) {
	for _, m := range judged(t, recorded(t, "node_exporter")) {
		if m.Path != "/mnt/nfs/test-dupe" {
			continue
		}
		if len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "ACCESS") {
			t.Errorf("warnings %q", m.Warnings)
		}
		for _, o := range m.Operations {
			if o.Operation == "ACCESS" && (!o.Unusable || o.QueueSeconds != 0) {
				t.Errorf("%+v", o)
			}
		}
	}
}

// TestSurroundings compares with fstab and read-ahead.
func TestSurroundings(t *testing.T) {
	tree := recorded(t, "telegraf",
		"etc/fstab", "# x\n1.2.3.4:/storage/NFS /NFS nfs rsize=1048576,wsize=32768,nconnect=4 0 0\n",
		"proc/self/mountinfo", "60 1 0:52 / /NFS rw - nfs 1.2.3.4:/storage/NFS rw\n",
		"sys/class/bdi/0:52/read_ahead_kb", "16\n")
	m := judged(t, tree)[0]
	why := strings.Join(m.Because, "\n")
	for _, want := range []string{"asks for rsize=1048576, and 32768 is in effect", "nconnect=4, and 1 is in effect",
		"Read-ahead of 16 KiB is less than one read of 32 KiB"} {
		if !strings.Contains(why, want) {
			t.Errorf("no %q in %q", want, why)
		}
	}
	if strings.Contains(why, "wsize") || m.ReadAhead != 16<<10 {
		t.Errorf("read-ahead %d, %q", m.ReadAhead, why)
	}
}

// TestSince subtracts, except where the mount was made anew.
func TestSince(t *testing.T) {
	before := procfs.NFSMount{Source: "s:/x", Age: 10 * time.Second, ReadBytes: 5,
		Operations: []procfs.NFSOperation{{Name: "READ", Requests: 10, Transmissions: 10, RoundTrip: time.Second}},
		Transports: []procfs.NFSTransport{{Sends: 10, InFlightSum: 10}}}
	after := before
	after.Age, after.ReadBytes = 20*time.Second, 9
	after.Operations = []procfs.NFSOperation{{Name: "READ", Requests: 110, Transmissions: 115, RoundTrip: 2 * time.Second},
		{Name: "WRITE", Requests: 7}}
	after.Transports = []procfs.NFSTransport{{Sends: 125, InFlightSum: 240}}
	d := nfs.Since(before, after)
	m := nfs.Judge(recorded(t, ""), d, 10*time.Second)
	if d.ReadBytes != 4 || m.Operations[0].Requests != 100 || m.Operations[0].Retransmissions != 5 ||
		m.Operations[0].RoundTrip != 0.01 || m.Transports[0].InFlight != 2 || m.SpanSeconds != 10 {
		t.Errorf("%+v", m)
	}
	after.Age = time.Second
	if d := nfs.Since(before, after); d.ReadBytes != 9 {
		t.Errorf("a mount made anew: %+v", d)
	}
}

// TestWay: the kernel counts whole milliseconds, so two calls show a long way and twenty a short
// one; one bounds it. What may be either is not called the server's.
func TestWay(t *testing.T) {
	const read, calls = 100, 10 // ms of a read, reads
	for _, c := range []struct {
		name  string
		count uint64
		each  int // ms
		waits nfs.Station
		why   string
	}{
		{"GETATTR", 0, 0, nfs.Remote, "No small call shows the network's part"},
		{"GETATTR", 2, 99, nfs.Network, "99.0 ms for each call"},
		{"FSINFO", 2, 9, nfs.Server, "at most 10.0 ms for each call"},
		{"ACCESS", 1, 99, nfs.Remote, "at most 100 ms for each call"},
		{"LOOKUP", 20, 3, nfs.Server, "3.00 ms for each call"},
		{"CLOSE", 20, 99, nfs.Remote, "No small call"},
		{"GETATTR", 4, 20, nfs.Server, "READ moves 15.1 KiB a call"}, // in two round trips
		{"GETATTR", 4, 30, nfs.Network, "30.0 ms for each call"},
	} {
		m := procfs.NFSMount{Operations: []procfs.NFSOperation{
			{Name: "READ", Requests: calls, Transmissions: calls, RoundTrip: calls * read * time.Millisecond,
				ReceivedBytes: calls * 15500},
			{Name: c.name, Requests: c.count, Transmissions: c.count,
				RoundTrip: time.Duration(c.count) * time.Duration(c.each) * time.Millisecond}}}
		for i, op := range m.Operations {
			m.Operations[i].Execution = op.RoundTrip
		}
		got := nfs.Judge(recorded(t, ""), m, time.Second)
		if got.Waits != c.waits || !strings.Contains(strings.Join(got.Because, "\n"), c.why) {
			t.Errorf("%d calls %s of %d ms: %s, %q", c.count, c.name, c.each, got.Waits, got.Because)
		}
	}
	// Reads alone, in a span: the small calls since the mount show the way.
	before := procfs.NFSMount{Source: "s:/x", Operations: []procfs.NFSOperation{
		{Name: "GETATTR", Requests: 20, Transmissions: 20, RoundTrip: 20 * 99 * time.Millisecond}, {Name: "READ"}}}
	after := before
	after.Operations = []procfs.NFSOperation{before.Operations[0],
		{Name: "READ", Requests: calls, Transmissions: calls, RoundTrip: calls * read * time.Millisecond}}
	if got := nfs.JudgeSince(recorded(t, ""), before, after, time.Second); got.Waits != nfs.Network ||
		len(got.Operations) != 1 {
		t.Errorf("since: %s, %q", got.Waits, got.Because)
	}
}

// TestSlots: connections have slots each with NFS 3, and share those of the session with 4.1; but a
// transport that is busy sending is helped by another one.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		version string
		sending uint64
		why     string
	}{
		{"3", 0, "nconnect allows up to 16"},
		{"4.0", 0, "nconnect allows up to 16"},
		{"4.1", 50, "The server and the module parameter nfs.max_session_slots bound them (64 here); nconnect adds none"},
		{"4.2", 300, "nconnect allows up to 16"},
	} {
		m := procfs.NFSMount{Options: []string{"vers=" + c.version, "proto=tcp"},
			Operations: []procfs.NFSOperation{{Name: "WRITE", Requests: 100, Transmissions: 100, Queue: time.Minute,
				RoundTrip: time.Second, Execution: time.Minute}},
			Transports: []procfs.NFSTransport{{Protocol: "tcp", Sends: 100, SendingSum: c.sending}}}
		got := nfs.Judge(recorded(t, "", "sys/module/nfs/parameters/max_session_slots", "64\n"), m, time.Minute)
		if got.Waits != nfs.Slots || !strings.Contains(strings.Join(got.Because, "\n"), c.why) {
			t.Errorf("NFS %s, %d sending: %s, %q", c.version, c.sending, got.Waits, got.Because)
		}
	}
}

// TestNone: no mount is an empty list, no client another answer.
func TestNone(t *testing.T) {
	all, err := nfs.Read(recorded(t, ""))
	if err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	_, err = nfs.Read(recorded(t, "", "proc/filesystems", "\text4\n"))
	if !errors.Is(err, nfs.ErrNoNFS) {
		t.Errorf("without a client: %v", err)
	}
	if m := nfs.Judge(recorded(t, ""), procfs.NFSMount{}, time.Second); m.Waits != nfs.Nowhere {
		t.Errorf("an idle mount waits %s", m.Waits)
	}
}

// FuzzMountStats: any bytes end, without a panic, and no mount is without a place.
func FuzzMountStats(f *testing.F) {
	for _, name := range []string{"node_exporter", "telegraf", "kubernetes", "rdma"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	tree, err := hostfs.Of(hostfs.NewMemory([]hostfs.Entry{{Name: "proc", Directory: true}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := procfs.ParseMountStats(b)
		if err != nil && !errors.Is(err, procfs.ErrFormat) {
			t.Errorf("error without a kind: %v", err)
		}
		for _, m := range all {
			nfs.Judge(tree, nfs.Since(m, m), m.Age)
		}
	})
}

package sample_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// world is a network namespace with its sampler, and what a history would make of the readings:
// what each name carried, by what was counted.
type world struct {
	t      *testing.T
	c      *nl.Client
	s      *sample.Sampler
	packet int // a raw socket

	last   map[string]float64 // of transmitted packets, by label, as a history has it
	series map[string]*sample.Series
	sent   map[string]float64 // since the reading before, by present name
	gaps   int

	unchecked bool // what is sent is lost on the way
}

// inWorld runs f in a namespace of its own.
func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	nltest.InNetNS(t, func() {
		// Nothing but the test is to send: no neighbour discovery.
		for _, which := range []string{"all", "default"} {
			nltest.Must(t, os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/disable_ipv6", []byte("1"), 0))
		}
		c, err := nl.Dial()
		nltest.Must(t, err)
		defer func() { _ = c.Close() }()
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		nltest.Must(t, err)
		defer func() { _ = unix.Close(fd) }()
		s, err := sample.New(sample.Options{})
		nltest.Must(t, err)
		defer func() { _ = s.Close() }()
		f(&world{t: t, c: c, s: s, packet: fd, last: map[string]float64{}, series: map[string]*sample.Series{},
			sent: map[string]float64{}})
	})
}

// pair makes a veth that is up at both ends.
func (w *world) pair(a, b string) {
	w.t.Helper()
	nltest.Must(w.t, w.c.AddVeth(a, b, -1))
	nltest.Must(w.t, w.c.SetUp(a))
	nltest.Must(w.t, w.c.SetUp(b))
}

func (w *world) index(name string) int {
	w.t.Helper()
	l, err := w.c.LinkByName(name)
	nltest.Must(w.t, err)
	return l.Index
}

// send sends frames out of an interface, as many as the kernel counts: an interface that has just
// come up throws away what it gets, until a worker of the kernel has given it its queue.
func (w *world) send(name string, frames int) {
	w.t.Helper()
	index := w.index(name)
	frame := make([]byte, 100)
	copy(frame, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x88\xb5") // an experimental protocol, to all
	counted := func() int {
		links, err := w.c.LinkCounters(nil)
		nltest.Must(w.t, err)
		i := slices.IndexFunc(links, func(l nl.LinkCounters) bool { return l.Index == index })
		return int(links[i].Counts[nl.TxPackets])
	}
	target := counted() + frames
	for patience := time.Now().Add(time.Minute); ; {
		missing := target - counted()
		if missing <= 0 {
			break
		}
		if time.Now().After(patience) {
			w.t.Fatalf("%s sent %d frames of %d", name, frames-missing, frames)
		}
		for range missing {
			nltest.Must(w.t, unix.Sendto(w.packet, frame, 0,
				&unix.SockaddrLinklayer{Ifindex: index, Protocol: binary.BigEndian.Uint16([]byte{0xb5, 0x88})}))
		}
	}
	w.sent[name] += float64(frames)
}

// rename gives an interface another name, which needs it down on most kernels.
func (w *world) rename(from, to string) {
	w.t.Helper()
	nltest.Must(w.t, w.c.SetDown(from))
	if out, ok := nltest.OtherSays(w.t, "ip", "link", "set", "dev", from, "name", to); !ok {
		w.t.Fatalf("ip link set dev %s name %s: %s", from, to, out)
	}
	nltest.Must(w.t, w.c.SetUp(to))
	w.sent[to] += w.sent[from]
	delete(w.sent, from)
}

// read takes a reading and holds that a history of it shows what was sent under each name or
// nothing.
func (w *world) read() *sample.Reading {
	w.t.Helper()
	r, err := w.s.Read(time.Time{})
	nltest.Must(w.t, err)
	if len(r.Warnings) > 0 {
		w.t.Errorf("warnings: %q", r.Warnings)
	}
	seen := make(map[string]bool)
	for _, p := range r.Points {
		key := p.Series.Metric.Name + fmt.Sprint(p.Series.Values)
		if seen[key] {
			w.t.Errorf("%s occurs twice", key)
		}
		seen[key] = true
		if w.unchecked || p.Series.Metric.Name != "linerate_interface_transmit_packets_total" {
			continue
		}
		name := p.Series.Values[0]
		was, known := w.last[name]
		increase := p.Value - was
		if increase < 0 {
			increase = p.Value // as Prometheus takes a counter that began anew
		}
		if known {
			switch {
			case increase != 0 && increase != w.sent[name]:
				w.t.Errorf("%s: %g packets in the history, %g were sent", name, increase, w.sent[name])
			case increase != w.sent[name]:
				w.gaps++
			}
		}
		if before := w.series[name]; before != nil && before != p.Series && p.Value != 0 && !known {
			w.t.Errorf("%s begins at %g", name, p.Value)
		}
		w.last[name], w.series[name] = p.Value, p.Series
	}
	for _, s := range r.Ended {
		if key := s.Metric.Name + fmt.Sprint(s.Values); seen[key] {
			w.t.Errorf("%s ends and has a point", key)
		}
	}
	clear(w.sent)
	return r
}

// happened lists the changes of a reading.
func happened(r *sample.Reading) []string {
	var all []string
	for _, h := range r.Happened {
		all = append(all, string(h.Change)+" "+h.Interface)
	}
	slices.Sort(all)
	return all
}

func (w *world) expect(r *sample.Reading, want ...string) {
	w.t.Helper()
	if got := happened(r); !slices.Equal(got, want) {
		w.t.Errorf("happened: %q, want %q", got, want)
	}
}

// quietly holds that the next readings are exact and nothing happens in them.
func (w *world) quietly(names ...string) {
	w.t.Helper()
	gaps := w.gaps
	for i := range 3 {
		for _, name := range names {
			w.send(name, 3+i)
		}
		w.expect(w.read())
	}
	if w.gaps != gaps {
		w.t.Errorf("%d figures left out of quiet readings", w.gaps-gaps)
	}
}

func TestNamesComeGoAndChange(t *testing.T) {
	testenv.Need(t, testenv.Peers)
	inWorld(t, func(w *world) {
		w.pair("a", "a1")
		w.pair("b", "b1")
		w.send("a", 1000) // before the first reading
		w.expect(w.read())
		w.quietly("a", "b")

		t.Log("a rename")
		w.send("a", 7)
		w.rename("a", "c")
		w.send("c", 5)
		r := w.read()
		w.expect(r, "link-down a1", "link-down c", "link-renamed c", "link-up a1", "link-up c")
		if len(r.Ended) == 0 {
			t.Error("nothing ended with the name a")
		}
		w.quietly("c", "b")

		t.Log("two that swap their names, one of which has carried far more")
		w.send("b", 500)
		w.read()
		w.rename("b", "x")
		w.rename("c", "b")
		w.rename("x", "c")
		w.send("b", 3)
		w.send("c", 4)
		w.read()
		w.quietly("b", "c")

		t.Log("deleted, and made anew under the name")
		w.send("b", 50)
		nltest.Must(t, w.c.DeleteLink("b"))
		w.pair("b", "new1")
		clear(w.sent)
		w.send("b", 2000) // more than the former had
		w.expect(w.read(), "link-came b", "link-came new1", "link-gone a1", "link-gone b")
		w.quietly("b", "c")

		t.Log("the same again, with a reading in between")
		nltest.Must(t, w.c.DeleteLink("b"))
		w.read()
		w.pair("b", "new1")
		w.send("b", 2000)
		w.read()
		w.quietly("b", "c")

		t.Log("another thing with the number and the name of one that is gone")
		w.send("b", 50)
		before, err := w.c.LinkByName("b")
		nltest.Must(t, err)
		nltest.Must(t, w.c.DeleteLink("b"))
		if out, ok := nltest.OtherSays(t, "ip", "link", "add", "name", "b", "index", strconv.Itoa(before.Index), "type",
			"bridge"); !ok {
			t.Fatal(out)
		}
		nltest.Must(t, w.c.SetUp("b"))
		clear(w.sent)
		w.expect(w.read(), "link-came b", "link-gone b", "link-gone new1")
		nltest.Must(t, w.c.DeleteLink("b"))
		w.read()
		w.pair("b", "new1")
		w.read()

		t.Log("moved to another namespace, and back")
		far := otherNamespace(t)
		nltest.Must(t, w.c.MoveToNetNS("c", far))
		w.expect(w.read(), "link-down b1", "link-gone c")
		w.quietly("b")
	})
}

// The other end of a link goes down and comes back between two readings: the link was up
// at every reading.
func TestLinkThatFlaps(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pair("a", "a1")
		w.read()
		nltest.Must(t, w.c.SetDown("a1"))
		nltest.Must(t, w.c.SetUp("a1"))
		r := w.read()
		if got := happened(r); !slices.Contains(got, "link-down a") || !slices.Contains(got, "link-up a") {
			t.Errorf("happened: %q", got)
		}
		nltest.Must(t, w.c.SetDown("a1"))
		r = w.read()
		w.expect(r, "link-down a", "link-down a1")
		for _, h := range r.Happened {
			if h.Text != map[string]string{"a": "a has no link any more", "a1": "a1 was taken down"}[h.Interface] ||
				h.Time != r.Time {
				t.Errorf("%+v", h)
			}
		}
		nltest.Must(t, w.c.SetUp("a1"))
		w.expect(w.read(), "link-up a", "link-up a1")
	})
}

// otherNamespace gives a descriptor of a new network namespace.
func otherNamespace(t *testing.T) int {
	t.Helper()
	type answer struct {
		fd  int
		err error
	}
	made := make(chan answer)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- answer{err: err}
			return
		}
		fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		made <- answer{fd, err}
	}()
	a := <-made
	nltest.Must(t, a.err)
	t.Cleanup(func() { _ = unix.Close(a.fd) })
	return a.fd
}

// The queues of an interface go with its name.
func TestQueuesFollowTheName(t *testing.T) {
	testenv.Need(t, testenv.Peers)
	inWorld(t, func(w *world) {
		for _, pair := range [][2]string{{"a", "a1"}, {"b", "b1"}} {
			if out, ok := nltest.OtherSays(t, "ip", "link", "add", "name", pair[0], "numtxqueues", "3", "numrxqueues",
				"3", "type", "veth", "peer", "name", pair[1]); !ok {
				t.Fatal(out)
			}
			nltest.Must(t, w.c.SetUp(pair[0]))
			nltest.Must(t, w.c.SetUp(pair[1]))
		}
		queues := func(r *sample.Reading, name string) int {
			return len(sample.NewIndex(r.Points).Of("linerate_queue_packets_total", name))
		}
		if r := w.read(); queues(r, "a") != 3 || queues(r, "b") != 3 {
			t.Fatalf("%d queues of a, %d of b", queues(r, "a"), queues(r, "b"))
		}
		w.rename("a", "c")
		r := w.read()
		if queues(r, "a") != 0 || queues(r, "c") != 3 {
			t.Errorf("after the rename %d queues of a, %d of c", queues(r, "a"), queues(r, "c"))
		}
		if n := slices.IndexFunc(r.Ended, func(s *sample.Series) bool {
			return s.Metric.Name == "linerate_queue_packets_total" && s.Values[0] == "a"
		}); n < 0 {
			t.Error("the queues of a did not end")
		}
		w.rename("b", "x")
		w.rename("c", "b")
		w.rename("x", "c")
		if r := w.read(); queues(r, "b")+queues(r, "c") != 0 {
			t.Errorf("a swap: %d queues of b, %d of c, which end in this reading", queues(r, "b"), queues(r, "c"))
		}
		for patience := time.Now().Add(time.Minute); ; {
			r := w.read() // they become due in proportion to their cost
			if queues(r, "b") == 3 && queues(r, "c") == 3 {
				break
			}
			if time.Now().After(patience) {
				t.Fatalf("after the swap %d queues of b, %d of c", queues(r, "b"), queues(r, "c"))
			}
		}
	})
}

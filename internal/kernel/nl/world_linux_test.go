package nl_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

func TestNetnsVeth(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		far := netNSFd(t)
		nltest.Must(t, c.AddVeth("near.100", "far0", far)) // a name with a dot, as VLAN interfaces have
		nltest.Must(t, c.SetMTU("near.100", 9000))
		nltest.Must(t, c.SetTxQueueLen("near.100", 77))
		nltest.Must(t, c.SetMAC("near.100", "02:00:00:00:00:01"))
		nltest.Must(t, c.AddAddress("near.100", "10.9.0.1/24"))
		nltest.Must(t, c.AddAddress("near.100", "fd00:9::1/64"))

		f := dialIn(t, far)
		nltest.Must(t, f.SetUp("far0"))
		nltest.Must(t, c.SetUp("near.100"))

		l, err := c.LinkByName("near.100")
		nltest.Must(t, err)
		want := nl.Link{
			Index: l.Index, Name: "near.100", Kind: "veth", MAC: "02:00:00:00:00:01", MTU: 9000, MinMTU: 68,
			MaxMTU: 65535, TxQueueLen: 77,
			TxQueues: l.TxQueues, RxQueues: l.RxQueues, Up: true, Carrier: true, Qdisc: l.Qdisc,
			ParentIndex: l.ParentIndex,
			// GSO_LEGACY_MAX_SIZE and GRO_LEGACY_MAX_SIZE of linux/netdevice.h; some kernels lack
			// the others.
			GSOMaxBytes: 65536, GROMaxBytes: l.GROMaxBytes, GROIPv4MaxBytes: l.GROIPv4MaxBytes,
			GSOIPv4MaxBytes: l.GSOIPv4MaxBytes,
		}
		if diff := cmp.Diff(want, l); diff != "" {
			t.Errorf("link (-want +got):\n%s", diff)
		}
		addrs, err := c.Addresses()
		nltest.Must(t, err)
		var got []string
		for _, a := range addrs {
			if a.Index == l.Index && !strings.HasPrefix(a.CIDR, "fe80") {
				got = append(got, a.CIDR)
			}
		}
		if diff := cmp.Diff([]string{"10.9.0.1/24", "fd00:9::1/64"}, got); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		if _, err := c.LinkByName("far0"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("far end seen from the near namespace: %v", err)
		}

		nltest.Must(t, c.SetDown("near.100"))
		nltest.Must(t, c.MoveToNetNS("near.100", far))
		if _, err := f.LinkByName("near.100"); err != nil {
			t.Errorf("moved link: %v", err)
		}
		nltest.Must(t, f.DeleteLink("far0"))
		links, err := f.Links()
		nltest.Must(t, err)
		if len(links) != 1+countIFB(links) {
			t.Errorf("links left after deletion: %+v", links)
		}
	})
}

// countIFB counts the ifb devices that some kernels make in every new namespace.
func countIFB(links []nl.Link) (n int) {
	for _, l := range links {
		if l.Kind == "ifb" || l.Kind == "tunl" || l.Kind == "sit" {
			n++
		}
	}
	return n
}

func TestNetnsBridgePorts(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		nltest.Must(t, c.AddVeth("a", "b", -1))
		if err := c.AddLink("br0", "bridge"); errors.Is(err, nl.ErrNotSupported) {
			t.Skipf("kernel without bridge: %v", err)
		} else {
			nltest.Must(t, err)
		}
		nltest.Must(t, c.SetMaster("a", "br0"))
		a, err := c.LinkByName("a")
		nltest.Must(t, err)
		br, err := c.LinkByName("br0")
		nltest.Must(t, err)
		if a.MasterIndex != br.Index || br.Kind != "bridge" {
			t.Errorf("a: %+v, bridge: %+v", a, br)
		}
		nltest.Must(t, c.SetMaster("a", ""))
		if err := c.SetMaster("a", "nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing master: %v", err)
		}
	})
}

func TestNetnsErrors(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		for _, tc := range []struct {
			name string
			err  error
			is   error
			text string
		}{
			{"missing link", c.SetMTU("nope", 1500), fs.ErrNotExist, "set mtu of nope: no such device"},
			{"empty name", c.SetUp(""), fs.ErrNotExist, "set up: no such device"},
			{"name too long", c.SetUp("a-name-beyond-IFNAMSIZ"), fs.ErrNotExist, "no such device"},
			{"exists", c.AddVeth("v0", "v2", -1), fs.ErrExist, "file exists"},
			{"kernel's sentence", c.SetMTU("v0", 10), unix.EINVAL, "mtu less than device minimum"},
			{"negative", c.SetMTU("v0", -1), unix.ERANGE, ""},
			{"unknown kind", c.AddLink("x", "no-such-kind"), nl.ErrNotSupported, "Unknown device type"},
			{"bad address", c.AddAddress("v0", "10.0.0.1"), nil, "no '/'"},
		} {
			if tc.err == nil || tc.is != nil && !errors.Is(tc.err, tc.is) ||
				!strings.Contains(tc.err.Error(), tc.text) {
				t.Errorf("%s: %v; want %v and the text %q", tc.name, tc.err, tc.is, tc.text)
			}
			var e *nl.Error
			if tc.err != nil && !errors.As(tc.err, &e) {
				t.Errorf("%s: %T is not *nl.Error", tc.name, tc.err)
			}
		}
	})
}

func TestNetnsPermission(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		// Capabilities belong to the thread, which is destroyed after the test. The test dials a
		// new client, since the kernel also checks the credentials of the process that opened the
		// socket.
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		nltest.Must(t, unix.Capset(&header, &none[0]))
		weak, err := nl.Dial()
		nltest.Must(t, err)
		defer func() { _ = weak.Close() }()
		if _, err := weak.LinkByName("v0"); err != nil {
			t.Errorf("reading needs no capability: %v", err)
		}
		for what, err := range map[string]error{
			"mtu":     weak.SetMTU("v0", 1400),
			"feature": ethtool.New(weak).SetFeature("v0", "tx-tcp-segmentation", false),
			"veth":    weak.AddVeth("x", "y", -1),
			// the kernel checks the permission before the number
			"channel": ethtool.New(weak).SetChannel("v0", "rx", 1<<20),
		} {
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v; want fs.ErrPermission", what, err)
			}
		}
	})
}

func TestNetnsSizeLimits(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		read := func(which nl.SizeLimit) int {
			t.Helper()
			l, err := c.LinkByName("v0")
			nltest.Must(t, err)
			return l.SizeLimit(which)
		}
		for _, which := range []nl.SizeLimit{nl.LimitGRO, nl.LimitGSO, nl.LimitGROIPv4, nl.LimitGSOIPv4} {
			was := read(which)
			if was == 0 { // a kernel before 6.3
				if err := c.SetSizeLimit("v0", which, 4096); !errors.Is(err, nl.ErrNotSupported) {
					t.Errorf("%s: %v", which, err)
				}
				continue
			}
			for _, bytes := range []int{40000, was} {
				nltest.Must(t, c.SetSizeLimit("v0", which, bytes))
				if got := read(which); got != bytes {
					t.Errorf("%s: %d after setting %d", which, got, bytes)
				}
			}
			if which == nl.LimitGRO && read(nl.LimitGROIPv4) == 0 {
				continue // a kernel before 6.3 accepts any number here
			}
			if err := c.SetSizeLimit("v0", which, 1<<30); !errors.Is(err, unix.EINVAL) {
				t.Errorf("%s: a gigabyte: %v", which, err)
			}
		}
		if err := c.SetSizeLimit("v0", "size", 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unknown limit: %v", err)
		}
		if err := c.SetSizeLimit("nope", nl.LimitGRO, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no link: %v", err)
		}
		if read("size") != 0 {
			t.Error("an unknown limit has a value")
		}
	})
}

func TestNetnsQdiscCounters(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		nltest.Must(t, c.SetUp("v0"))
		nltest.Must(t, c.SetUp("v1"))
		nltest.Must(t, c.AddAddress("v0", "10.9.0.1/24"))
		root := func() nl.Qdisc {
			t.Helper()
			qs, err := c.Qdiscs()
			nltest.Must(t, err)
			for _, q := range qs {
				if q.Interface == "v0" && q.Parent == nl.RootParent {
					return q
				}
			}
			t.Fatalf("no root qdisc of v0 in %+v", qs)
			return nl.Qdisc{}
		}
		if err := c.ReplaceTBF("v0", nl.TBF{}); err == nil {
			t.Error("token bucket without rate accepted")
		}
		// The bucket passes the frames of its burst, queues a few and drops the rest. At 8 bit/s the next
		// frame leaves after a quarter of an hour, so a test that is held up still finds the queue full.
		nltest.Must(t, c.ReplaceTBF("v0", nl.TBF{RateBitsPerSecond: 8, BurstBytes: 3000, LimitBytes: 3000}))
		before := root()
		if before.Kind != "tbf" {
			t.Fatalf("root qdisc %+v", before)
		}
		// The destination, the broadcast address of the link, needs no neighbour.
		conn, err := net.Dial("udp4", "10.9.0.255:9")
		if err != nil {
			// Broadcast needs a socket option, which net.Dial sets.
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		const datagrams = 40
		for range datagrams {
			// a full queue may be reported as ENOBUFS; that is the loss to count
			_, _ = conn.Write(make([]byte, 1000))
		}
		after := root()
		sent, dropped := after.Packets-before.Packets, after.Drops-before.Drops
		if dropped == 0 || sent == 0 || sent > 10 || after.Overlimits == 0 || after.BacklogBytes == 0 ||
			after.BacklogPackets == 0 {
			t.Errorf("%d datagrams: %d sent, %d dropped; %+v", datagrams, sent, dropped, after)
		}
		// more than 32 bits of bytes per second
		nltest.Must(t, c.ReplaceTBF("v0", nl.TBF{RateBitsPerSecond: 100e9, BurstBytes: 1 << 20, LimitBytes: 1 << 20}))
		nltest.Must(t, c.ReplaceQdisc("v0", "pfifo"))
		if q := root(); q.Kind != "pfifo" {
			t.Errorf("replaced: %+v", q)
		}
	})
}

// A client works in the namespace in which it was dialled, from any thread.
func TestNetnsClientFromOtherThreads(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		nltest.Must(t, c.AddVeth("only-here", "peer", -1))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if _, err := c.LinkByName("only-here"); err != nil {
						t.Error(err)
					}
					if _, err := ethtool.New(c).Features("only-here"); err != nil {
						t.Error(err)
					}
					if _, err := route.New(c).List(); err != nil {
						t.Error(err)
					}
					if _, err := ethtool.New(c).Statistics("only-here"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// Neither a closed client nor a failed dial leaves a descriptor open.
func TestNetnsClientLeavesNothingOpen(t *testing.T) {
	inNetNS(t, func(c *nl.Client) {
		count := func() int {
			entries, err := os.ReadDir("/proc/self/fd")
			nltest.Must(t, err)
			return len(entries)
		}
		before := count()
		for range 50 {
			other, err := nl.Dial()
			nltest.Must(t, err)
			_, _ = ethtool.New(other).Features("nope")
			nltest.Must(t, other.Close())
			if _, err := other.Links(); err == nil {
				t.Error("a closed client returned no error")
			}
			if _, err := ethtool.New(other).Driver("lo"); err == nil {
				t.Error("a closed client returned no error")
			}
		}
		if after := count(); after > before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

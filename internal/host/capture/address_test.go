package capture

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func testScrubber() *scrubber { return newScrubber([keyBytes]byte{42}) }

// TestKept: what has a meaning of its own stays, and so does what only looks like an address.
func TestKept(t *testing.T) {
	s := testScrubber()
	for _, text := range []string{
		"127.0.0.1", "::1", "::", "0.0.0.0", "0.0.0.0/0", "::/0", "224.0.0.1", "ff02::1", "255.255.255.255",
		"255.255.248.0", "128.0.0.0/1", "10.0.0.0/8",
		"fe80::/64", "fe80::/10", "fc00::/7", "2000::/3", "192.0.2.0/24", "203.0.113.0/24", "2001:db8::/32",
		"00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff",
		"00000000-0000-0000-0000-000000000000", "0000:03:00.0", "pci0000:00/0000:00:1f.6", "12:34:56", "1-1.2.3.4",
		"ffffffff,ffffffff", "6.18.44-fc",
		"4096\t131072\t33554432", "eth0.100@eth0", "enp3s0f0np0", "eno1", "enxyz", "0x86dd", "fq_codel 8001: root",
		"...", ":", "-", "%", "a::b::c",
	} {
		if got := s.text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestReplaced: every address is replaced by one of its kind, and the text around it stays.
func TestReplaced(t *testing.T) {
	s := testScrubber()
	kinds := map[string]func(netip.Addr) bool{
		"10.1.2.3":             func(a netip.Addr) bool { return a.As4()[0] == 10 },
		"172.20.1.1":           func(a netip.Addr) bool { return a.IsPrivate() && a.As4()[0] == 172 },
		"172.40.1.1":           func(a netip.Addr) bool { return !a.IsPrivate() && a.As4()[0] == 172 },
		"192.168.0.1":          func(a netip.Addr) bool { return a.IsPrivate() && a.As4()[0] == 192 },
		"169.254.7.9":          netip.Addr.IsLinkLocalUnicast,
		"100.64.3.2":           func(a netip.Addr) bool { return netip.MustParsePrefix("100.64.0.0/10").Contains(a) },
		"84.23.7.15":           func(a netip.Addr) bool { return a.IsGlobalUnicast() && !a.IsPrivate() },
		"192.0.2.77":           netip.MustParsePrefix("192.0.2.0/24").Contains,
		"fe80::21b:21ff:fe0:1": netip.MustParsePrefix("fe80::/64").Contains,
		"fd12:3456::1":         func(a netip.Addr) bool { return a.As16()[0] == 0xfd },
		"2a02:8108::1":         netip.MustParsePrefix("2000::/3").Contains,
		"::ffff:10.1.2.3": func(a netip.Addr) bool {
			return a.Is4In6() && a.Unmap() == s.replace.addr(netip.MustParseAddr("10.1.2.3"))
		},
		"ff02::1:ff12:3456": solicited.Contains,
	}
	for text, is := range kinds {
		for _, around := range []string{"%", "addr=%,", "[%]:2049", "from %.", "(%)", "\"%\""} {
			before, after, _ := strings.Cut(around, "%")
			got := s.text(before + text + after)
			core, ok := strings.CutPrefix(got, before)
			core, ok2 := strings.CutSuffix(core, after)
			a, err := netip.ParseAddr(core)
			if !ok || !ok2 || err != nil || a == netip.MustParseAddr(text) || !is(a) {
				t.Errorf("%q became %q", before+text+after, got)
			}
		}
	}
	if got := s.text("fe80::1%eth0"); !strings.HasSuffix(got, "%eth0") || got == "fe80::1%eth0" {
		t.Errorf("zone: %q", got)
	}
	if got, want := s.text("10.1.2.3:22 10.1.2.3-10.1.2.9"), s.text("10.1.2.3")+":22 "+s.text("10.1.2.3")+"-"+
		s.text("10.1.2.9"); got != want {
		t.Errorf("port and range: %q, want %q", got, want)
	}
}

// TestHardware: the same card is the same one wherever it shows: in an address of its own, in a
// name, in an IPv6 address.
func TestHardware(t *testing.T) {
	s := testScrubber()
	const in = "00:1b:21:0a:0b:0c"
	got := s.text(in)
	if got == in || got[1] != '2' && got[1] != '6' && got[1] != 'a' && got[1] != 'e' {
		t.Errorf("%s became %s: not locally administered", in, got)
	}
	if name := s.text("net.ipv4.conf.enx001b210a0b0c.rp_filter"); name != "net.ipv4.conf.enx"+
		strings.ReplaceAll(got, ":", "")+".rp_filter" {
		t.Errorf("name %q of %s", name, got)
	}
	if name := s.path("sys/class/net/enx001b210a0b0c/mtu"); name != "sys/class/net/enx"+
		strings.ReplaceAll(got, ":", "")+"/mtu" {
		t.Errorf("path %q of %s", name, got)
	}
	a := netip.MustParseAddr(s.text("fe80::21b:21ff:fe0a:b0c")).As16()
	if colons([]byte{a[8] ^ 2, a[9], a[10], a[13], a[14], a[15]}) != got {
		t.Errorf("interface identifier of %v is not that of %s", a, got)
	}
	if m := s.text("01:00:5e:00:00:fb"); m[1] != '3' && m[1] != '7' && m[1] != 'b' && m[1] != 'f' {
		t.Errorf("multicast became %s", m)
	}
	if ib := s.text("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10:3b"); len(ib) != 59 ||
		strings.Contains(ib, "c9:03") {
		t.Errorf("InfiniBand became %s", ib)
	}
}

// FuzzPrefix: two addresses share exactly as many leading bits after replacement as before, beyond
// what is kept of their kind, and stay different.
func FuzzPrefix(f *testing.F) {
	f.Add([]byte{10, 1, 2, 3}, []byte{10, 1, 2, 200})
	f.Add([]byte{84, 1, 2, 3}, []byte{84, 1, 130, 3})
	f.Add([]byte{172, 16, 2, 3}, []byte{172, 200, 130, 3})
	f.Add([]byte{0x20, 1, 0xd, 0xb8, 15: 1}, []byte{0x20, 1, 0xd, 0xb8, 15: 2})
	f.Add([]byte{0x2a, 2, 0x81, 8, 15: 1}, []byte{0x2a, 2, 0x81, 9, 15: 2})
	s := testScrubber()
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a, ok1 := netip.AddrFromSlice(one)
		b, ok2 := netip.AddrFromSlice(two)
		if !ok1 || !ok2 || a.BitLen() != b.BitLen() || a.Is4In6() || b.Is4In6() {
			return
		}
		to, to2 := s.replace.addr(a), s.replace.addr(b)
		if kindOf(a) != kindOf(to) {
			t.Errorf("%v became %v: %s, %s", a, to, kindOf(a), kindOf(to))
		}
		// Interface identifiers made of hardware addresses follow those, and blocks that keep their
		// meaning are not turned bit by bit.
		least, most := 8, 32
		if a.Is4() && mixed(one[0]) {
			least = 16
		}
		if a.Is6() {
			least, most = 3, 64
		}
		before, after := min(shared(a, b), most), min(shared(to, to2), most)
		if kindOf(a) == kindOf(b) && plainKind(a) && plainKind(b) && before >= least && before != after {
			t.Errorf("%v and %v share %d bits, %v and %v %d", a, b, before, to, to2, after)
		}
		if a != b && to == to2 && a.Is4() {
			t.Errorf("%v and %v are both %v", a, b, to)
		}
	})
}

// kindOf names the classes that must not change.
func kindOf(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsMulticast():
		return "multicast"
	case a.IsPrivate():
		return "private"
	case a.IsLinkLocalUnicast():
		return "link-local"
	}
	return "public"
}

// plainKind reports whether an address is in no block with a meaning.
func plainKind(a netip.Addr) bool {
	if a.Is4() {
		return kindOf(a) == "public" && a.As4()[0] < 224 && a.As4()[0] > 0
	}
	return netip.MustParsePrefix("2000::/3").Contains(a) &&
		!slices.ContainsFunc([]string{"2001:db8::/32", "2002::/16", "3fff::/20"}, func(p string) bool {
			return netip.MustParsePrefix(p).Contains(a)
		})
}

func shared(a, b netip.Addr) int {
	for n := a.BitLen(); n > 0; n-- {
		p, err := a.Prefix(n)
		if err == nil && p.Contains(b) {
			return n
		}
	}
	return 0
}

// FuzzContent: whatever is in a file of any name, scrubbing ends and gives the same for the same; a
// table keeps its lines.
func FuzzContent(f *testing.F) {
	names := []string{
		"proc/net/route", "proc/net/ipv6_route", "proc/net/if_inet6", "proc/self/mountinfo", "proc/mounts",
		"proc/self/mountstats", "proc/cmdline",
		"linerate/links.json", "proc/sys/kernel/hostname", "proc/cpuinfo", "sys/class/net/eth0/address", "proc/stat",
	}
	f.Add(0, "eth0\t0011A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n")
	f.Add(3, "36 35 0:40 / /home/alice rw shared:1 - nfs4 filer:/x rw,addr=10.0.0.1\n")
	f.Add(5, "device filer:/x mounted on /mnt with fstype nfs4 statvers=1.1\n\topts:\trw,addr=10.0.0.1\n")
	f.Add(7, `[{"name":"eth0","mac":"00:1b:21:00:00:01"}]`)
	s := testScrubber()
	f.Fuzz(func(t *testing.T, which int, text string) {
		name := names[uint(which)%uint(len(names))]
		one, two := s.content(name, []byte(text)), s.content(name, []byte(text))
		if string(one) != string(two) {
			t.Errorf("%q became %q and %q", text, one, two)
		}
		value := name == "proc/cmdline" || name == "proc/sys/kernel/hostname" // replaced as a whole
		if !value && !strings.HasSuffix(name, ".json") &&
			strings.Count(text, "\n") != strings.Count(string(one), "\n") {
			t.Errorf("%s: %q became %q", name, text, one)
		}
	})
}

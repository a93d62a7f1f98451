package ethtool

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

func linkModesMessage(t testing.TB) []byte {
	return nltest.Encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		nltest.Unknown(ae)
		ae.Uint8(unix.ETHTOOL_A_LINKMODES_AUTONEG, 1)
		ae.Nested(unix.ETHTOOL_A_LINKMODES_OURS, bitset([]string{"1000baseT/Full", "Autoneg", "10000baseT/Full"},
			map[string]bool{"1000baseT/Full": true, "Autoneg": true}))
		ae.Nested(unix.ETHTOOL_A_LINKMODES_PEER, bitset([]string{"100baseT/Full", "1000baseT/Full"}, nil))
		ae.Uint32(linkModesLanes, 1)
	})
}

func permanentMessage(size uint32, address ...byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.ETHTOOL_GPERMADDR)
	b = binary.NativeEndian.AppendUint32(b, size)
	return append(b, address...)
}

// A link is slow because a mode is supported but not advertised, so the two sets must not be
// confused.
func TestParseLinkModes(t *testing.T) {
	got, err := parseLinkModes(linkModesMessage(t))
	want := LinkModes{
		Autoneg: true, Lanes: 1, Supported: []string{"10000baseT/Full", "1000baseT/Full", "Autoneg"},
		Advertised: []string{"1000baseT/Full", "Autoneg"},
		Partner:    []string{"1000baseT/Full", "100baseT/Full"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParsePermanentAddress(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want string
		ok   bool
	}{
		{permanentMessage(6, 0, 0x1b, 0x21, 1, 2, 3, 0, 0), "00:1b:21:01:02:03", true},
		{permanentMessage(6, 0, 0, 0, 0, 0, 0), "", true},
		{permanentMessage(0), "", true},
		{permanentMessage(7, 1, 2, 3), "", false},
		{permanentMessage(1<<32-1, 1), "", false},
		{nil, "", false},
	} {
		if got, err := parsePermanentAddress(c.b); got != c.want || (err == nil) != c.ok {
			t.Errorf("%x: %q %v", c.b, got, err)
		}
	}
}

// FuzzLinkModes checks for any bytes that every advertised mode is supported.
func FuzzLinkModes(f *testing.F) {
	f.Add(linkModesMessage(f))
	f.Add(permanentMessage(6, 0, 0x1b, 0x21, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _ := parseLinkModes(b)
		for _, mode := range m.Advertised {
			if !slices.Contains(m.Supported, mode) {
				t.Errorf("%s is advertised but not supported", mode)
			}
		}
		if a, err := parsePermanentAddress(b); err == nil && len(a) > 3*len(b) {
			t.Errorf("address %q", a)
		}
	})
}

// This package reads the same modes and permanent addresses that ethtool(8) prints, for every link
// of this machine and for a tap, which has a mode but no permanent address.
func TestNetnsModesAgreeWithEthtool(t *testing.T) {
	compare := func(c world, name string) {
		t.Helper()
		if out, ok := nltest.OtherSays(t, "ethtool", "-P", name); ok {
			theirs := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(out), "Permanent address:"))
			if theirs == "not set" || strings.Trim(theirs, "0:") == "" {
				theirs = ""
			}
			if ours, err := c.PermanentAddress(name); err != nil || ours != theirs {
				t.Errorf("permanent address of %s: here %q %v, ethtool prints %q", name, ours, err, theirs)
			}
		}
		out, ok := nltest.OtherSays(t, "ethtool", name)
		m, err := c.LinkModes(name)
		if !ok || err != nil {
			return
		}
		base := func(mode string) bool { return strings.Contains(mode, "base") }
		for heading, modes := range map[string][]string{"Supported link modes:": m.Supported,
			"Advertised link modes:": m.Advertised} {
			ours := slices.DeleteFunc(slices.Clone(modes), func(mode string) bool { return !base(mode) })
			theirs := slices.DeleteFunc(strings.Fields(section(out, heading)),
				func(mode string) bool { return !base(mode) })
			slices.Sort(theirs)
			if !slices.Equal(ours, theirs) {
				t.Errorf("%s of %s: %q here, %q there", heading, name, ours, theirs)
			}
		}
	}
	inNetNS(t, func(c world) {
		nltest.AddTap(t, "tap0")
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		compare(c, "tap0")
		compare(c, "v0")
		if _, err := c.LinkModes("nope"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no link: %v", err)
		}
		if _, err := c.PermanentAddress("nope"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no link: %v", err)
		}
	})
	c := dialled(t)
	links, err := c.Links()
	nltest.Must(t, err)
	for _, l := range links {
		compare(c, l.Name)
	}
}

// This package reads what ethtool -i, -S and -a print: everything for an idle veth in a namespace,
// and everything except the counts for every link of this machine.
func TestNetnsDriverAgreesWithEthtool(t *testing.T) {
	compare := func(c world, name string, still bool) (n int) {
		t.Helper()
		if out, ok := nltest.OtherSays(t, "ethtool", "-i", name); ok {
			d, err := c.Driver(name)
			nltest.Must(t, err)
			said := nltest.Pairs(out)
			for key, ours := range map[string]string{"driver": d.Driver, "version": d.Version,
				"firmware-version": d.Firmware, "bus-info": d.Bus} {
				theirs := said[key]
				if theirs == "N/A" {
					theirs = ""
				}
				n++
				if ours != theirs {
					t.Errorf("%s of %s: %q here, %q there", key, name, ours, theirs)
				}
			}
		}
		if out, ok := nltest.OtherSays(t, "ethtool", "-S", name); ok {
			stats, err := c.Statistics(name)
			nltest.Must(t, err)
			said := nltest.Pairs(out)
			for key, theirs := range said {
				ours, ok := stats[key]
				n++
				if !ok || still && strconv.FormatUint(ours, 10) != theirs {
					t.Errorf("%s of %s: %d %v here, %s there", key, name, ours, ok, theirs)
				}
			}
			if len(stats) != len(said) {
				t.Errorf("%s: %d counters here, %d there", name, len(stats), len(said))
			}
		}
		out, ok := nltest.OtherSays(t, "ethtool", "-a", name)
		p, err := c.Pause(name)
		if ok != (err == nil) {
			t.Errorf("pause of %s: here %v, ethtool prints %q", name, err, out)
		}
		if ok {
			on := map[string]bool{"on": true}
			said := nltest.Pairs(out)
			n++
			if p.Rx != on[said["RX"]] || p.Tx != on[said["TX"]] || p.Autoneg != on[said["Autonegotiate"]] {
				t.Errorf("pause of %s: here %+v, ethtool prints %q", name, p, out)
			}
		}
		return n
	}
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		if n := compare(c, "v0", true); n < 8 {
			t.Errorf("only %d values compared", n)
		}
	})
	c := dialled(t)
	links, err := c.Links()
	nltest.Must(t, err)
	for _, l := range links {
		compare(c, l.Name, false)
	}
}

// section returns the text after a heading of ethtool(8), with the more deeply indented lines below
// it.
func section(text, heading string) string {
	_, after, ok := strings.Cut(text, heading)
	if !ok {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(after) {
		if out.Len() > 0 && strings.Contains(line, ":") {
			break
		}
		out.WriteString(line)
	}
	return out.String()
}

package ethtool

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

func TestNetnsFeatures(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		read := func(name string) Feature {
			t.Helper()
			m, err := c.Features("v0")
			nltest.Must(t, err)
			f, ok := m[name]
			if !ok {
				t.Fatalf("no feature %s in %v", name, m)
			}
			return f
		}
		for _, name := range []string{"tx-tcp-segmentation", "rx-gro"} {
			was := read(name)
			if was.Fixed {
				t.Errorf("%s is fixed", name)
			}
			for _, on := range []bool{!was.On, was.On} {
				nltest.Must(t, c.SetFeature("v0", name, on))
				if got := read(name); got.On != on {
					t.Errorf("%s: on %v after setting %v", name, got.On, on)
				}
			}
		}
		if !read("tx-vlan-stag-hw-insert").On || !read("rx-fcs").Fixed {
			t.Errorf("unexpected defaults of a veth: %+v %+v", read("tx-vlan-stag-hw-insert"), read("rx-fcs"))
		}
		if err := c.SetFeature("v0", "rx-fcs", true); !errors.Is(err, nl.ErrNotSupported) {
			t.Errorf("fixed feature: %v", err)
		}
		nltest.Must(t, c.SetFeature("v0", "rx-fcs", false)) // already off
		if err := c.SetFeature("v0", "tx-warp-drive", true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unknown feature: %v", err)
		}
		// Segmentation needs scatter-gather: the kernel accepts the request but does not switch it
		// on.
		nltest.Must(t, c.SetFeature("v0", "tx-scatter-gather", false))
		if err := c.SetFeature("v0", "tx-tcp-segmentation", true); !errors.Is(err, nl.ErrNotApplied) {
			t.Errorf("segmentation without scatter-gather: %v", err)
		}
		nltest.Must(t, c.SetFeature("v0", "tx-scatter-gather", true))
		if !read("tx-tcp-segmentation").On {
			t.Error("segmentation stayed off after scatter-gather was back on")
		}
	})
}

func TestNetnsEthtoolReads(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		nltest.Must(t, c.SetUp("v0"))
		nltest.Must(t, c.SetUp("v1"))
		d, err := c.Driver("v0")
		nltest.Must(t, err)
		if d.Driver != "veth" {
			t.Errorf("driver %+v", d)
		}
		speed, duplex, err := c.LinkMode("v0")
		nltest.Must(t, err)
		if speed != 10e9 || duplex != "full" {
			t.Errorf("link mode %v %q; want 10 Gb/s, full", speed, duplex)
		}
		ch, err := c.Channels("v0")
		nltest.Must(t, err)
		if ch.Rx+ch.Combined == 0 {
			t.Errorf("channels %+v", ch)
		}
		info, err := c.LinkInfo("v0")
		nltest.Must(t, err)
		if info.Port == "" {
			t.Errorf("link info %+v", info)
		}
		peer, err := c.LinkByName("v1")
		nltest.Must(t, err)
		stats, err := c.Statistics("v0")
		nltest.Must(t, err)
		if stats["peer_ifindex"] != uint64(peer.Index) {
			t.Errorf("peer_ifindex %d, want %d; all: %v", stats["peer_ifindex"], peer.Index, stats)
		}
	})
}

func TestNetnsErrors(t *testing.T) {
	inNetNS(t, func(c world) {
		for _, tc := range []struct {
			name string
			err  error
			is   error
			text string
		}{
			{"rings of a veth", nltest.Second(c.Channels("lo")), nl.ErrNotSupported, ""},
			{"missing link, ethtool", nltest.Second(c.Features("nope")), fs.ErrNotExist, ""},
			{"missing link, ioctl", nltest.Second(c.Statistics("nope")), fs.ErrNotExist, ""},
		} {
			if tc.err == nil || tc.is != nil && !errors.Is(tc.err, tc.is) ||
				!strings.Contains(tc.err.Error(), tc.text) {
				t.Errorf("%s: %v; want %v and the text %q", tc.name, tc.err, tc.is, tc.text)
			}
			var e *nl.Error
			if !errors.As(tc.err, &e) {
				t.Errorf("%s: %T is not *nl.Error", tc.name, tc.err)
			}
		}
	})
}

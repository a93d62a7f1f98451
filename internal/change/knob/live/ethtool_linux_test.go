package live_test

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// cards is a namespace with the two drivers that let settings of a NIC be changed without one: a
// tap, which takes rx-frames up to 64 (tun_set_coalesce), and a veth, which changes its channels.
// The tap lives as long as the descriptor.
func cards(t *testing.T) (ns *knobtest.NetNS, tap int) {
	t.Helper()
	ns = knobtest.NewNetNS(t)
	ns.Do(t, func() {
		client(t, func(c *nl.Client) error { return c.AddVeth("v0", "v1", -1) })
		// The namespace of a tap is that of the thread that opens the file.
		var err error
		if tap, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			t.Error(err)
			return
		}
		req, err := unix.NewIfreq("tap0")
		if err == nil {
			req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(tap, unix.TUNSETIFF, req)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return ns, tap
}

// client runs one request in the namespace of the calling thread.
func client(t *testing.T, f func(*nl.Client) error) {
	t.Helper()
	c, err := nl.Dial()
	if err == nil {
		err = errors.Join(f(c), c.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

func TestNetnsEthtoolSuite(t *testing.T) {
	knobtest.Suite(t, func(t *testing.T) knobtest.Fixture {
		ns, tap := cards(t)
		open := true
		unplug := func() {
			if open {
				open = false
				_ = unix.Close(tap)
			}
		}
		t.Cleanup(unplug)
		queues := "2"
		ns.Do(t, func() {
			client(t, func(c *nl.Client) error {
				ch, err := ethtool.New(c).Channels("v0")
				if ch.MaxRx < 2 {
					queues = "1" // a machine with one CPU
				}
				return err
			})
		})
		return knobtest.Fixture{
			Backend: ns.Backend(t, live.New()),
			Writable: []knobtest.Pair{
				// The first one is fought over by several writers. A number that another program
				// sets back before it is read back looks as if the driver had not taken it, so that
				// this is no knob of ethtool.
				{Knob: "link:tap0/txqueuelen", A: "500", B: "77"},
				{Knob: "ethtool:tap0/coalesce.rx-frames", A: "16", B: "32"},
				{Knob: "ethtool:v0/channels.rx", A: "1", B: knob.Value(queues)},
				{Knob: "ethtool:v1/channels.tx", A: "1", B: knob.Value(queues)},
				{Knob: "ethtool:v0/feature.rx-gro", A: "on", B: "off"},
			},
			Messy: []knobtest.Messy{
				{Knob: "ethtool:tap0/coalesce.rx-frames", Text: " 016\n", ReadBack: "16"},
				{Knob: "ethtool:tap0/coalesce.rx-frames", Text: "100", ReadBack: "64"}, // asked 100, got 64
			},
			Invalid: []knob.Setting{
				{Knob: "ethtool:tap0/coalesce.rx-frames", Value: "-1"},
				{Knob: "ethtool:tap0/coalesce.rx-frames", Value: "4294967296"},
				{Knob: "ethtool:tap0/coalesce.rx-frames", Value: "few"},
				{Knob: "ethtool:v0/channels.rx", Value: "0"},
				{Knob: "ethtool:v0/channels.rx", Value: "4096"},
			},
			ReadOnly: knob.Setting{Knob: "sysctl:net.ipv4.tcp_available_congestion_control", Value: "reno"},
			Missing: []knob.ID{
				"ethtool:eth9/ring.rx", "ethtool:eth9/channels.combined", "ethtool:eth9/coalesce.rx-usecs",
				"ethtool:eth9/coalesce.adaptive-rx",
				"ethtool:eth9/pause.rx", "ethtool:eth9/eee", "ethtool:eth9/flag.legacy-rx",
				"ethtool:tap0/coalesce.rx-moons",
				"ethtool:v0/channels.sideways",
			},
			Unsupported: "ethtool:tap0/ring.rx",
			Foreign: func(t *testing.T, s knob.Setting) {
				ns.Do(t, func() {
					if s.Knob.Kind() == knob.KindLink || strings.HasPrefix(s.Knob.Attribute(), "feature.") {
						foreignWrite(t, s)
						return
					}
					n, err := strconv.ParseUint(string(s.Value), 10, 32)
					if err != nil {
						t.Error(err)
					}
					group, key, _ := strings.Cut(s.Knob.Attribute(), ".")
					client(t, func(c *nl.Client) error {
						if group == "channels" {
							return ethtool.New(c).SetChannel(s.Knob.Subject(), key, uint32(n))
						}
						return ethtool.New(c).SetCoalesce(s.Knob.Subject(), key, uint32(n))
					})
				})
			},
			Device: "ethtool:tap0/coalesce.rx-frames",
			Vanish: func(*testing.T) { unplug() },
		}
	})
}

// A refusal names what the driver accepts: its own maximum where it reports one, and the kernel's
// sentence.
func TestNetnsEthtoolRefusals(t *testing.T) {
	ns, tap := cards(t)
	t.Cleanup(func() { _ = unix.Close(tap) })
	b := ns.Backend(t, live.New())
	for _, tc := range []struct {
		id    knob.ID
		value knob.Value
		is    error
		text  []string
	}{
		{"ethtool:v0/channels.rx", "1000000", knob.ErrInvalid,
			[]string{"at most ", "maximum of this driver", "exceeds maximum"}},
		{"ethtool:v0/channels.rx", "0", knob.ErrInvalid,
			[]string{"that goes with the other settings", "no RX or TX channel"}},
		{"ethtool:v0/channels.combined", "1", knob.ErrNotSupported, nil},
		{"ethtool:v0/pause.rx", "on", knob.ErrNotSupported, []string{"pause of v0"}},
		{"ethtool:v0/eee", "off", knob.ErrNotSupported, nil},
		{"ethtool:v0/flag.rx_cqe_compress", "on", knob.ErrNotSupported, nil},
		{"ethtool:tap0/coalesce.rx-usecs", "8", knob.ErrNotSupported, []string{"rx-usecs"}},
		{"ethtool:tap0/coalesce.adaptive-rx", "on", knob.ErrNotSupported, nil},
		{"ethtool:tap0/colour", "1", knob.ErrNotSupported, []string{"colour"}},
	} {
		err := b.Write(t.Context(), tc.id, tc.value)
		if !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, want %v", tc.id, err, tc.is)
			continue
		}
		for _, text := range tc.text {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v does not say %q", tc.id, err, text)
			}
		}
	}
	// At the maximum a larger number changes nothing, and that is no success.
	const frames = knob.ID("ethtool:tap0/coalesce.rx-frames")
	for i, want := range []error{nil, knob.ErrInvalid} {
		if err := b.Write(t.Context(), frames, "100"); !errors.Is(err, want) {
			t.Errorf("write %d of 100: %v, want %v", i+1, err, want)
		}
	}
}

// Every entry answers on every driver that this machine has, by its value in canonical form or by
// saying why not. Reading the real interfaces changes nothing.
func TestNetnsEveryEthtoolKnobAnswers(t *testing.T) {
	ns, tap := cards(t)
	t.Cleanup(func() { _ = unix.Close(tap) })
	inside, host := ns.Backend(t, live.New()), live.New()
	where := map[string]knob.Backend{"v0": inside, "tap0": inside}
	client(t, func(c *nl.Client) error {
		links, err := c.Links()
		for _, l := range links {
			where[l.Name] = host
		}
		return err
	})
	values, refusals := 0, 0
	for _, d := range knob.Catalogue().All() {
		if d.Pattern.Kind() != knob.KindEthtool {
			continue
		}
		attribute := strings.ReplaceAll(d.Pattern.Attribute(), "*", "no-such-name")
		for name, b := range where {
			id := knob.ID("ethtool:" + name + "/" + attribute)
			v, err := b.Read(t.Context(), id)
			switch {
			case err == nil:
				values++
				if c, nerr := d.Canonical(v); nerr != nil || c != v {
					t.Errorf("%s reads %q, which its definition makes %q, %v", id, v, c, nerr)
				}
			case errors.Is(err, knob.ErrNotSupported),
				// A feature may be younger than the kernel, and the invented flag is one that no
				// driver has.
				errors.Is(err, fs.ErrNotExist) &&
					(strings.HasPrefix(attribute, "feature.") || strings.HasPrefix(attribute, "flag.")):
				refusals++
			default:
				t.Errorf("%s: %v", id, err)
			}
		}
		id := knob.ID("ethtool:eth-none/" + attribute)
		if _, err := inside.Read(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want fs.ErrNotExist", id, err)
		}
	}
	if values < 20 || refusals < 20 {
		t.Errorf("%d values and %d refusals", values, refusals)
	}
}

// The catalogue knows every moderation parameter that the kernel's family has, and every one of
// them has the form that reading gives.
func TestEveryModerationParameterIsKnown(t *testing.T) {
	for _, key := range strings.Fields(`rx-usecs rx-frames rx-usecs-irq rx-frames-irq tx-usecs tx-frames tx-usecs-irq ` +
		`tx-frames-irq
		stats-block-usecs adaptive-rx adaptive-tx pkt-rate-low rx-usecs-low rx-frames-low tx-usecs-low tx-frames-low ` +
		`pkt-rate-high
		rx-usecs-high rx-frames-high tx-usecs-high tx-frames-high sample-interval cqe-mode-tx cqe-mode-rx
		tx-aggr-max-bytes tx-aggr-max-frames tx-aggr-time-usecs`) {
		d, ok := knob.Catalogue().Lookup(knob.ID("ethtool:eth0/coalesce." + key))
		want := knob.FormInt
		if strings.HasPrefix(key, "adaptive-") || strings.HasPrefix(key, "cqe-mode-") {
			want = knob.FormSwitch
		}
		if !ok || d.Form != want || d.Form == knob.FormInt && d.Unit == "" {
			t.Errorf("%s: known %v, form %s, unit %q; want form %s with a unit", key, ok, d.Form, d.Unit, want)
		}
	}
}

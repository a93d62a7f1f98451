package live_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// Every entry of the catalogue reads on the kernel that runs, with a value of the form that the
// entry says, or says why not with exactly one of the three answers. On the host as it is: nothing
// is written.
func TestEveryEntryReadsOrSaysWhyNot(t *testing.T) {
	host := live.New()
	reads := 0
	for _, d := range knob.Catalogue().All() {
		ids, err := host.Instances(t.Context(), d)
		if err != nil {
			if !oneAnswer(err) || err.Error() == "" {
				t.Errorf("%s: %v", d.Pattern, err)
			}
			continue
		}
		for _, id := range ids {
			v, err := host.Read(t.Context(), id)
			switch {
			case err != nil && !oneAnswer(err):
				t.Errorf("%v: is none of the three answers, or several", err)
			case err != nil:
			default:
				reads++
				if c, err := d.Canonical(v); err != nil || c != v {
					t.Errorf("%s: %q has the canonical form %q, %v", id, v, c, err)
				}
			}
		}
	}
	if reads < 60 {
		t.Errorf("only %d knobs can be read", reads)
	}
}

// oneAnswer reports whether an error is exactly one of: not there, not permitted, not supported.
func oneAnswer(err error) bool {
	n := 0
	for _, kind := range []error{fs.ErrNotExist, fs.ErrPermission, knob.ErrNotSupported} {
		if errors.Is(err, kind) {
			n++
		}
	}
	return n == 1
}

// A pattern stands for what this namespace has, and for nothing that has an entry of its own.
func TestNetnsInstances(t *testing.T) {
	ns := world(t)
	host := live.New()
	for pattern, want := range map[knob.ID][]knob.ID{
		"sysctl:net.ipv4.tcp_rmem": {"sysctl:net.ipv4.tcp_rmem"},
		"link:*/mtu":               {"link:lo/mtu", "link:v0.100/mtu", "link:v1/mtu"},
		"queue:*/rx-*/rps_cpus": {"queue:lo/rx-0/rps_cpus", "queue:v0.100/rx-0/rps_cpus",
			"queue:v1/rx-0/rps_cpus"},
		"sysctl:net.ipv4.conf.*.rp_filter": {"sysctl:net.ipv4.conf.v0/100.rp_filter",
			"sysctl:net.ipv4.conf.lo.rp_filter"},
		"sysctl:net.ipv4.neigh.*.unres_qlen_bytes": {"sysctl:net.ipv4.neigh.v1.unres_qlen_bytes"},
		"route:*/window": {"route:default/window", "route:10.20.0.0/16/window",
			"route:::/0/window"},
		"nfs:*/rsize": nil,
	} {
		d, ok := knob.Catalogue().Lookup(pattern)
		if !ok {
			t.Errorf("no entry %s", pattern)
			continue
		}
		var got []knob.ID
		var err error
		ns.Do(t, func() { got, err = host.Instances(t.Context(), d) })
		if err != nil {
			t.Error(err)
		}
		for _, id := range want {
			if !slices.Contains(got, id) {
				t.Errorf("%s: %q lacks %s", pattern, got, id)
			}
		}
		for _, id := range got {
			if strings.Contains(string(id), "*") {
				t.Errorf("%s: %s is a pattern still", pattern, id)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := host.Instances(ctx, knob.Catalogue().All()[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	d, _ := knob.Catalogue().Lookup("ethtool:lo/feature.something-new")
	if _, err := host.Instances(t.Context(), d); !errors.Is(err, knob.ErrNotSupported) {
		t.Errorf("a star for whatever there is: %v", err)
	}
}

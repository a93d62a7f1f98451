package live_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// What real drivers set anew when they start their NIC again comes back with an undo, whatever it
// is: every setting of the interface is compared, of which another program has set some before.
func TestGuestSideEffects(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	for _, test := range []struct {
		model  string
		other  map[knob.ID]knob.Value // what another program has set before
		change knob.ID
		value  knob.Value
		effect knob.ID // one that must have changed as well; "": any, or none
	}{
		{"virtio-net-pci", map[knob.ID]knob.Value{"queue:IF/rx-1/rps_cpus": "1", "queue:IF/tx-1/xps_cpus": "2",
			"queue:IF/rx-1/rps_flow_cnt": "1024"},
			"ethtool:IF/channels.combined", "1", "queue:IF/rx-1/rps_cpus"},
		{"virtio-net-pci", map[knob.ID]knob.Value{"sysctl:net.ipv6.conf.IF.mtu": "1400"},
			"link:IF/mtu", "9000", "sysctl:net.ipv6.conf.IF.mtu"},
		{"virtio-net-pci", map[knob.ID]knob.Value{"queue:IF/rx-1/rps_cpus": "1"}, "ethtool:IF/ring.rx", "128", ""},
		{"e1000e", map[knob.ID]knob.Value{"ethtool:IF/coalesce.rx-usecs": "1000"}, "ethtool:IF/ring.rx", "512", ""},
		{"e1000e", map[knob.ID]knob.Value{"ethtool:IF/coalesce.rx-usecs": "1000", "ethtool:IF/ring.tx": "512"},
			"link:IF/mtu", "9000", ""},
		{"e1000", map[knob.ID]knob.Value{"ethtool:IF/feature.tx-tcp-segmentation": "off"}, "link:IF/mtu", "9000", ""},
		{"vmxnet3", map[knob.ID]knob.Value{"ethtool:IF/ring.rx": "512"}, "link:IF/mtu", "9000", ""},
		{"vmxnet3", map[knob.ID]knob.Value{"ethtool:IF/ring.tx": "1024"}, "ethtool:IF/feature.rx-lro", "off", ""},
	} {
		t.Run(test.model+" "+string(test.change), func(t *testing.T) {
			name := guesttest.Plug(t, test.model)
			defer guesttest.Unplug(t, name)
			bringUp(t, name)
			of := func(id knob.ID) knob.ID { return knob.ID(strings.ReplaceAll(string(id), "IF", name)) }
			b := live.New()
			for _, short := range slices.Sorted(maps.Keys(test.other)) {
				if err := b.Write(t.Context(), of(short), test.other[short]); err != nil {
					t.Fatal(err)
				}
			}
			id := of(test.change)
			before := picture(t, b, id)
			j, err := journal.Open(journal.Options{Dir: t.TempDir(), Backend: knob.Catalogued{Backend: b},
				Catalog: knob.Catalogue(), Unguarded: true})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			changes, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: id, Value: test.value})
			if err != nil {
				t.Fatal(err)
			}
			found := test.effect == ""
			for _, s := range changes[0].SideEffects {
				t.Logf("note: %s %s=%s also set %s: %s, %s", test.model, test.change, test.value, s.Knob, s.From, s.To)
				found = found || s.Knob == of(test.effect)
			}
			if !found {
				t.Errorf("%s is not among the side effects %v", test.effect, changes[0].SideEffects)
			}
			outcomes, err := j.UndoAll(t.Context())
			if err != nil {
				t.Errorf("undo: %v", err)
			}
			if diff := cmp.Diff(before, picture(t, b, id)); diff != "" {
				t.Errorf("%s\n%+v", diff, outcomes)
			}
		})
	}
}

// bringUp sets an interface up and waits until IPv6 has heard that its link is there, which it does
// up to a second later, from a queue of the kernel (link_watch.c). It then takes the MTU of the
// interface for its own (addrconf_notify), whatever the test has set meanwhile.
func bringUp(t *testing.T, name string) {
	t.Helper()
	up := func(k *nl.Client) error { return k.SetUp(name) }
	client(t, up)
	for !hasIPv6(t, name) {
		time.Sleep(10 * time.Millisecond)
	}
	client(t, up) // it waits for the lock under which IPv6 hears of links, and so until it is done
}

// hasIPv6 reports whether an interface has an IPv6 address.
func hasIPv6(t *testing.T, name string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/net/if_inet6")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(strings.Split(string(b), "\n"), func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 0 && words[len(words)-1] == name
	})
}

// picture is a knob and everything coupled to it.
func picture(t *testing.T, b *live.Host, id knob.ID) []string {
	t.Helper()
	v, err := b.Read(t.Context(), id)
	all := []string{fmt.Sprint(id, "=", v, err)}
	for _, s := range b.Coupled(t.Context(), id) {
		all = append(all, fmt.Sprint(s.Knob, "=", s.Value))
	}
	return all
}

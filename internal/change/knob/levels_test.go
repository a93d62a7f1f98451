package knob

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		knob    ID
		present Value
		want    []Value
	}{
		{"sysctl:net.core.netdev_budget", "300", []Value{"150", "600", "1200"}},
		{"sysctl:net.core.netdev_budget", "1", []Value{"2", "4"}},
		{"sysctl:net.core.netdev_budget", "2147483647", []Value{"300"}},
		{"sysctl:net.core.busy_read", "0", []Value{"20", "50", "100"}},
		{"sysctl:net.ipv4.tcp_rmem", "4096\t131072\t6291456",
			[]Value{"4096 131072 3145728", "4096 131072 12582912", "4096 131072 25165824"}},
		{"sysctl:net.ipv4.tcp_rmem", "4096 131072 131072", []Value{"4096 131072 262144", "4096 131072 524288"}},
		{"sysctl:net.ipv4.udp_mem", "100 200 400", []Value{"50 100 200", "200 400 800", "400 800 1600"}},
		{"sysctl:net.ipv4.ip_local_port_range", "32768 60999", nil},
		{"sysctl:net.ipv4.tcp_sack", "1", []Value{"0"}},
		{"sysctl:net.ipv4.tcp_mtu_probing", "0", []Value{"1", "2"}},
		{"sysctl:net.ipv4.tcp_notsent_lowat", "4294967295", []Value{"131072", "1048576"}},
		{"ethtool:eth0/feature.rx-gro", "on", []Value{"off"}},
		{"ethtool:eth0/coalesce.rx-usecs", "500", []Value{"250", "1000", "2000"}},
		{"ethtool:eth0/rss.function", "toeplitz", []Value{"xor", "crc32"}},
		{"queue:eth0/rx-0/rps_cpus", "0", nil},
		{"sysctl:net.ipv4.tcp_congestion_control", "cubic", nil},
		{"sysctl:net.core.netdev_budget", "many", nil},
	} {
		d, ok := Catalogue().Lookup(c.knob)
		if !ok {
			t.Fatalf("%s is not in the catalogue", c.knob)
		}
		if diff := cmp.Diff(c.want, d.Levels(c.present)); diff != "" {
			t.Errorf("%s at %q (-want +got):\n%s", c.knob, c.present, diff)
		}
	}
}

// TestLevelsHold asks of every definition at many present values: levels are canonical, allowed,
// none is the present one, none comes twice, and numbers ascend.
func TestLevelsHold(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 2026))
	tried := 0
	for _, d := range Catalogue().All() {
		presents := []Value{"0", "1", "on", "off", "none", "", "4096 87380 6291456", "1 1 1", Value(d.Default)}
		for range 40 {
			presents = append(presents, Value(strconv.FormatInt(random.Int64N(1<<uint(1+random.IntN(62))), 10)))
		}
		for _, present := range presents {
			levels := d.Levels(present)
			tried += len(levels)
			var last int64
			for i, v := range levels {
				canonical, err := d.Normalize(v)
				if err != nil || canonical != v {
					t.Errorf("%s at %q: level %q is not canonical: %q, %v", d.Pattern, present, v, canonical, err)
				}
				if d.Equal(v, present) {
					t.Errorf("%s at %q: level %q is the present value", d.Pattern, present, v)
				}
				if slices.Index(levels, v) != i {
					t.Errorf("%s at %q: level %q comes twice", d.Pattern, present, v)
				}
				if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && d.Form == FormInt {
					if i > 0 && n <= last {
						t.Errorf("%s at %q: levels %v do not ascend", d.Pattern, present, levels)
					}
					last = n
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d levels were looked at", tried)
	}
}

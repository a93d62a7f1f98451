package mesh

import (
	"slices"
	"testing"
)

// TestRacksWithBlanks: the second stage tests the hosts of the accused pair of racks and no others,
// whatever the racks are called.
func TestRacksWithBlanks(t *testing.T) {
	racks := []string{"ams/row 1", "ams/row 1 a", "ams/row", "1 ams/row", `ams/"row`, "ams/row 2", "clean"}
	var hosts []Host
	for _, rack := range racks {
		hosts = append(hosts, Host{ID: "one of " + rack, Rack: rack}, Host{ID: "two of " + rack, Rack: rack})
	}
	for i := range racks {
		for k := i + 1; k < len(racks); k++ {
			e := elements(hosts, Result{Test: Test{2 * i, 2 * k}})[4]
			var got []string
			for _, h := range hosts {
				if touches(h, e) && !slices.Contains(got, h.Rack) {
					got = append(got, h.Rack)
				}
			}
			if !slices.Equal(got, []string{racks[i], racks[k]}) {
				t.Errorf("%s %s: its racks are %q", e.Kind, e.Name, got)
			}
		}
	}
}

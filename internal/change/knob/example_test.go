package knob_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
)

// A name leads to its definition: what the knob is, and how much a change of it disturbs.
func ExampleCatalog_Lookup() {
	id, err := knob.ParseID("ethtool:eth0/ring.rx")
	if err != nil {
		fmt.Println(err)
		return
	}
	d, ok := knob.Catalogue().Lookup(id)
	fmt.Println(d.Pattern, d.Scope, d.Disturbance, ok)
	// Output: ethtool:*/ring.rx device d2 true
}

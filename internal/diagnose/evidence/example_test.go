package evidence_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// A receive window of 108 KiB over a round trip of 21 ms holds one flow at 42 Mb/s, whatever the
// link is.
func ExampleWindowRate() {
	fmt.Println(evidence.Rate(evidence.WindowRate(108<<10, 0.021)))
	// Output: 42.1 Mb/s
}

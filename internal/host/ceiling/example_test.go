package ceiling_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/host/ceiling"
)

// A link of 1 Gb/s carries at most 941 Mb/s of TCP payload in full frames.
func ExampleGoodputRatio() {
	fmt.Printf("%.1f Mb/s\n", 1000*ceiling.GoodputRatio(1500, false, true))
	fmt.Printf("%.1f Mb/s\n", 1000*ceiling.GoodputRatio(9000, false, true))
	// Output:
	// 941.5 Mb/s
	// 990.0 Mb/s
}

package link_test

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/lab/link"
)

// A frame of 1500 bytes crosses an emulated link of 10 Mb/s and 5 ms. The clock is the caller's, so
// the example takes no time.
func ExampleLine() {
	line, err := link.NewLine(link.Params{RateBitsPerSec: 10e6, DelaySeconds: 0.005})
	if err != nil {
		fmt.Println(err)
		return
	}
	frame := make([]byte, 1514)
	frame[12], frame[13] = 0x88, 0xb5 // an EtherType for experiments, IEEE 802
	line.Push(0, frame)
	due, ok := line.Next()
	fmt.Println(due.Round(time.Microsecond), ok)
	// Output: 6.222ms true
}

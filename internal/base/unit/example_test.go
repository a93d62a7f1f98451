package unit_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/unit"
)

func ExampleParseBitRate() {
	rate, err := unit.ParseBitRate("1.5Gbit/s")
	fmt.Println(float64(rate), rate, err)
	// Output: 1.5e+09 1.50 Gb/s <nil>
}

func ExampleBytes_String() {
	fmt.Println(unit.Bytes(1500), unit.Bytes(6<<20), unit.Bytes(6_300_000))
	// Output: 1500 B 6 MiB 6.01 MiB
}

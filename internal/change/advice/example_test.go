package advice_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/advice"
)

// A line of a wiki page, judged for two kernels.
func ExampleTarget_Judge() {
	page, err := advice.Parse([]byte("net.ipv4.tcp_tw_recycle = 1\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, release := range []string{"4.9", "6.18"} {
		kernel, err := advice.ParseRelease(advice.Linux, release)
		if err != nil {
			fmt.Println(err)
			return
		}
		target := advice.Target{OS: advice.Linux, Release: map[advice.OS]advice.Release{advice.Linux: kernel}}
		fmt.Println(release, target.Judge(page)[0].Verdict)
	}
	// Output:
	// 4.9 harmful
	// 6.18 removed
}

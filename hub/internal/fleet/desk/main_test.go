package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/pprof"
	"testing"
)

// asHub makes a process of this test binary a hub: a process of its own has its own memory and its
// own file descriptors. Its value is the options as JSON.
const asHub = "LINERATE_FLEET_HUB"

func TestMain(m *testing.M) {
	if text := os.Getenv(asMember); text != "" {
		beMember(text)
		return
	}
	if os.Getenv(asHolder) != "" {
		beHolder()
		return
	}
	if file := os.Getenv(asNATS); file != "" {
		beNATS(file)
		return
	}
	text := os.Getenv(asHub)
	if text == "" {
		os.Exit(m.Run())
	}
	var o Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	d, err := Open(o)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	ctx, stop := context.WithCancel(context.Background())
	go func() { // a line begins a profile, and the end of the input ends the hub
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			profileTo(lines.Text())
		}
		stop()
	}()
	if err := d.Run(ctx); err != nil {
		panic(err)
	}
	d.Close()
	profileTo("")
}

// profileTo ends the profile of the CPU time that runs, and begins one in a file if it is named.
func profileTo(file string) {
	pprof.StopCPUProfile()
	if file == "" {
		return
	}
	f, err := os.Create(file)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		panic(err)
	}
}

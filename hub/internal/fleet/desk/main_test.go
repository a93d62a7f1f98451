package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
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
	go func() { // the test ends it by closing its input
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		stop()
	}()
	if err := d.Run(ctx); err != nil {
		panic(err)
	}
	d.Close()
}

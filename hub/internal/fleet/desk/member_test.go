package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic/lease"
	"github.com/linerate/linerate/internal/wire"
)

// asMember makes a process of this test binary a host of a fleet, with a node and a responder as
// `linerate serve` has it. Its value is a memberOf as JSON.
const asMember = "LINERATE_FLEET_MEMBER"

// memberOf says what a member is.
type memberOf struct {
	Name, Home, Address, Token string // where and how it joins
	Serve                      string // HOST:PORT of its responder
	KeyFile, Policy            string
}

// beMember serves until its input is closed. Its namespace is ready once the first line is there.
// It answers each further line with the longest that it was late since the one before, in
// milliseconds; the first one begins that.
func beMember(text string) {
	var o memberOf
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	check(json.Unmarshal([]byte(text), &o))
	in := bufio.NewReader(os.Stdin)
	_, err := in.ReadString('\n')
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		var late atomic.Int64
		for watch := sync.OnceFunc(func() { go watchLate(&late) }); ; {
			if _, err := in.ReadString('\n'); err != nil {
				stop()
				return
			}
			watch()
			fmt.Println(late.Swap(0))
		}
	}()
	b, err := os.ReadFile(o.KeyFile)
	check(err)
	key, err := wire.ParseKey(string(b))
	check(err)
	listener, err := wire.Listen(ctx, o.Serve, key)
	check(err)
	shared := &lease.Lease{}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	parts.Go(func() {
		check(peer.Serve(ctx, peer.ServerOptions{Listener: listener, Version: "test", HostName: o.Name,
			Lease: &lease.Lease{}}))
	})
	_, token, err := member.ParseLine([]string{o.Address, o.Token})
	check(err)
	home, err := join.Prepare(durable.OS(), o.Home, o.Address, token)
	check(err)
	check(node.Run(ctx, node.Options{Home: home, Source: measurable(o), Version: "1.0",
		About:  join.About{Machine: "machine-" + o.Name, Name: o.Name},
		Prober: &node.Prober{KeyFile: o.KeyFile, Policy: o.Policy, Version: "test", Lease: shared},
		Joined: func(string) { fmt.Println("joined") }}))
}

// watchLate keeps the longest that this process was late for a time of its own, in milliseconds:
// a paused host answers no pings, and is no fault of a mesh.
func watchLate(most *atomic.Int64) {
	const look = 10 * time.Millisecond
	for before := time.Now(); ; before = time.Now() {
		time.Sleep(look)
		for ms := (time.Since(before) - look).Milliseconds(); ; {
			was := most.Load()
			if ms <= was || most.CompareAndSwap(was, ms) {
				break
			}
		}
	}
}

// asHolder makes a process of this test binary one that has the lease of its host until its input
// is closed: another load test.
const asHolder = "LINERATE_FLEET_HOLDER"

func beHolder() {
	var l lease.Lease
	_, err := l.Take()
	fmt.Println(err)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// measurable is the source of a host that others may measure.
type measurable memberOf

func (m measurable) Facts(context.Context) ([]byte, string, error) {
	f := inventory.Facts{Name: m.Name, OS: "linux", Kernel: "6.12.8", Arch: "amd64", Version: "1.0", Measure: m.Serve}
	return f.Encode()
}

func (m measurable) Answer(context.Context, string, []string) (any, error) {
	return nil, node.ErrUnknownVerb
}

func (m measurable) Document(context.Context, string) ([]byte, error) {
	return nil, errors.Join(errors.New("no document"), fs.ErrNotExist)
}

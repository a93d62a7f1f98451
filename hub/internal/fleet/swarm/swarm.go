package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/internal/base/durable"
)

// Options say what a swarm is.
type Options struct {
	Hosts    int
	Address  string // where the hosts join
	Token    member.Token
	Document int // bytes of the document "inspect"; 0: 23 kB

	BeatEvery time.Duration // 0: as real nodes
	Longest   time.Duration // between two attempts to connect; 0: as real nodes
	// Together is how many hosts begin to join at the same moment; 0: all.
	Together int
}

// Swarm counts what its hosts do.
type Swarm struct {
	Joined     atomic.Int64 // hosts that have an identity
	Connected  atomic.Int64 // connections made since the start, reconnections included
	Failed     atomic.Int64 // hosts that ended with an error
	mu         sync.Mutex
	firstError error
}

// Err returns the first error of a host.
func (s *Swarm) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.firstError
}

// Run runs the hosts until the context ends.
func (s *Swarm) Run(ctx context.Context, o Options) {
	if o.Document == 0 {
		o.Document = 23_000
	}
	if o.Together == 0 {
		o.Together = o.Hosts
	}
	gate := make(chan struct{}, o.Together)
	var all sync.WaitGroup
	for i := range o.Hosts {
		select {
		case gate <- struct{}{}:
		case <-ctx.Done():
			all.Wait()
			return
		}
		all.Go(func() {
			var once sync.Once
			free := func() { once.Do(func() { <-gate }) }
			defer free()
			if err := s.one(ctx, o, i, free); err != nil && ctx.Err() == nil {
				s.Failed.Add(1)
				s.mu.Lock()
				if s.firstError == nil {
					s.firstError = fmt.Errorf("host %d: %w", i, err)
				}
				s.mu.Unlock()
			}
		})
	}
	all.Wait()
}

func (s *Swarm) one(ctx context.Context, o Options, i int, joined func()) error {
	home, err := join.Prepare(durable.NewMem(), "/node", o.Address, o.Token)
	if err != nil {
		return err
	}
	source := NewHost(i, o.Document)
	return node.Run(ctx, node.Options{Home: home, Source: source, Version: "1.0",
		About:     join.About{Machine: fmt.Sprintf("machine-%d", i), Name: source.facts.Name},
		BeatEvery: o.BeatEvery, Longest: o.Longest,
		Joined: func(string) { s.Joined.Add(1); joined() }, Connected: func() { s.Connected.Add(1) }})
}

// Host is a simulated host.
type Host struct {
	facts    inventory.Facts
	encoded  []byte
	hash     string
	document int
}

// NewHost returns host i of a swarm. Of 100 hosts one has drifted, one differs from its class in a
// setting, and five have a finding.
func NewHost(i, document int) *Host {
	drivers := []string{"mlx5_core", "ice", "virtio_net", "e1000e"}
	f := inventory.Facts{Name: fmt.Sprintf("host%06d.example", i), OS: "linux", Kernel: "6.12.8", Arch: "amd64",
		CPU: "AMD EPYC 9354", CPUs: 64, Nodes: 2, MemoryBytes: 256 << 30, Version: "1.0",
		Cards: []inventory.Card{{Name: "eth0", Driver: drivers[i%len(drivers)], Firmware: "22.41.1000",
			Model: "15b3:101d", SpeedBitsPerSec: 100e9, MTUBytes: 9000, RxRing: "1024/8192"}},
		Settings: make(map[string]string)}
	for k := range 60 { // as many as linerate inspect shows
		f.Settings[fmt.Sprintf("net.ipv4.setting_%02d", k)] = fmt.Sprint(k * 1024)
	}
	switch i % 100 {
	case 1:
		f.Kept = []inventory.Kept{{Knob: "sysctl:net.core.rmem_max", Want: "8388608", Have: "212992", Change: "c1"}}
	case 2:
		f.Settings["net.ipv4.setting_07"] = "1"
	case 3, 4, 5, 6, 7:
		f.Findings = []string{"rx-ring-overrun"}
	}
	h := &Host{facts: f, document: document}
	h.encoded, h.hash, _ = f.Encode() // plain data
	return h
}

// Facts implements node.Source.
func (h *Host) Facts(context.Context) ([]byte, string, error) { return h.encoded, h.hash, nil }

// Answer implements node.Source.
func (h *Host) Answer(_ context.Context, verb string, _ []string) (any, error) {
	if verb == node.VerbPing {
		return node.Ping{Version: "1.0"}, nil
	}
	return nil, node.ErrUnknownVerb
}

// Document implements node.Source: a JSON text that packs like one of a real host, to a sixth.
func (h *Host) Document(_ context.Context, name string) ([]byte, error) {
	if name != node.DocumentInspect {
		return nil, fmt.Errorf("document %.40q: %w", name, fs.ErrNotExist)
	}
	random := rand.New(rand.NewPCG(uint64(len(h.facts.Name)), uint64(h.document)))
	var lines []string
	for size := 0; size < h.document; size += 64 {
		lines = append(lines, fmt.Sprintf("/sys/class/net/eth0/statistics/rx_packets_%016x_by_%s", random.Uint32(),
			h.facts.Name[:4]))
	}
	return json.Marshal(map[string]any{"name": h.facts.Name, "lines": lines})
}

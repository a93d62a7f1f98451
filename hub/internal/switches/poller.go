package switches

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/internal/base/visible"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/report"
)

// neighboursEach is the time between two readings of LLDP and the bridge's table.
const neighboursEach = 5 * time.Minute

// Agent is a session with a switch.
type Agent interface {
	mib.Agent
	Close() error
}

// Options of a poller.
type Options struct {
	Switches []Config
	Host     string // name of this host, as LLDP neighbours may call it
	Env      func(string) string
	Append   func(*sample.Reading)                  // to the history
	Put      func(source string, r *sample.Reading) // to the board of the last values
	Problem  func(part string, err error)           // each time, nil as well
	Log      *slog.Logger

	Open       func(Config) (Agent, error)     // tests; default SNMP
	Interfaces func() ([]net.Interface, error) // tests; default those of this host
}

// Poller reads switches at their intervals. Its methods may be called from several goroutines.
type Poller struct {
	o    Options
	each []*watched
}

// watched is one switch. Its poller owns keeper and session; mu guards what others see.
type watched struct {
	Config
	keeper     *Keeper
	agent      Agent
	neighbours time.Time // when they were read
	filed      time.Time // of the last reading in the history

	mu       sync.Mutex
	state    report.Switch
	findings []evidence.Finding
	attached []Attached
	at       time.Time // of the last success
}

// New returns a poller of valid switches.
func New(o Options) *Poller {
	if o.Open == nil {
		o.Open = func(c Config) (Agent, error) { return c.session(o.Env) }
	}
	if o.Interfaces == nil {
		o.Interfaces = net.Interfaces
	}
	p := &Poller{o: o}
	for _, c := range o.Switches {
		p.each = append(p.each, &watched{Config: c, keeper: NewKeeper(c.Name),
			state: report.Switch{Name: c.Name, Address: c.Address}})
	}
	return p
}

// Run reads until the context ends.
func (p *Poller) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, w := range p.each {
		all.Go(func() { p.watch(ctx, w) })
	}
	all.Wait()
}

func (p *Poller) watch(ctx context.Context, w *watched) {
	defer func() {
		if w.agent != nil {
			_ = w.agent.Close()
		}
	}()
	// Switches of one hub do not answer at the same moment: the first waits up to a second.
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.Name))
	timer := time.NewTimer(time.Duration(rand.New(rand.NewPCG(h.Sum64(), 1)).Int64N(int64(time.Second))))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		err := p.read(ctx, w)
		if ctx.Err() != nil {
			return
		}
		p.o.Problem("switch "+w.Name, err)
		timer.Reset(max(w.every()-time.Since(began), time.Second))
	}
}

// read reads a switch once and files what it says.
func (p *Poller) read(ctx context.Context, w *watched) error {
	ctx, cancel := context.WithTimeout(ctx, w.every())
	defer cancel()
	s, err := p.ask(ctx, w)
	if err != nil {
		if w.agent != nil { // the next reading looks the name up again, and reads the keys again
			_ = w.agent.Close()
			w.agent = nil
		}
		r := w.keeper.Silent(time.Now().Truncate(time.Millisecond))
		p.file(w, r)
		w.mu.Lock()
		w.state.Error = visible.Line(err.Error())
		w.mu.Unlock()
		return err
	}
	w.keeper.Take(s)
	r, zeros := w.keeper.Readings(s.Time.Truncate(time.Millisecond), w.filed)
	if zeros != nil {
		p.o.Append(zeros)
	}
	p.file(w, r)
	w.filed = r.Time
	attached := p.attached(w, s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.findings, w.attached = s.Time, w.keeper.Findings(), attached
	w.state = w.keeper.State(w.Address, attached)
	return nil
}

func (p *Poller) file(w *watched, r *sample.Reading) {
	p.o.Append(r)
	p.o.Put("switch "+w.Name, r)
}

// ask reads a switch, and its neighbours from time to time. A switch that restarted during the
// reading is read again.
func (p *Poller) ask(ctx context.Context, w *watched) (*mib.Snapshot, error) {
	if w.agent == nil {
		agent, err := p.o.Open(w.Config)
		if err != nil {
			return nil, err
		}
		w.agent = agent
	}
	o := mib.Options{Ports: w.Ports, Neighbours: time.Since(w.neighbours) >= neighboursEach}
	if o.Neighbours {
		for _, i := range p.interfaces() { // interfaces of VLANs have the address of their card
			if !slices.ContainsFunc(o.Hosts, func(h net.HardwareAddr) bool { return slices.Equal(h, i.HardwareAddr) }) {
				o.Hosts = append(o.Hosts, i.HardwareAddr)
			}
		}
	}
	s, err := mib.Read(ctx, w.agent, o)
	if err != nil {
		return nil, err
	}
	if o.Neighbours {
		w.neighbours = s.Time
	} else {
		for i := range s.Ports {
			if known := w.keeper.ports[s.Ports[i].Name]; known != nil {
				now, last := &s.Ports[i], &known.last
				now.Neighbours, now.Hosts, now.Untagged, now.Tagged = last.Neighbours, last.Hosts, last.Untagged, last.Tagged
			}
		}
	}
	return s, nil
}

// interfaces returns the interfaces of this host that have a cable, as far as an address says it.
func (p *Poller) interfaces() []net.Interface {
	all, err := p.o.Interfaces()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(i net.Interface) bool {
		return i.Flags&net.FlagLoopback != 0 || len(i.HardwareAddr) != 6 || i.HardwareAddr[0]&1 != 0
	})
}

// attached returns the ports at which this host hangs, or the trunks behind which it is. LLDP is
// better than the bridge's tables, which also have hosts behind another switch; the configuration
// is the last word.
func (p *Poller) attached(w *watched, s *mib.Snapshot) []Attached {
	var out []Attached
	put := func(a Attached) {
		if !slices.ContainsFunc(out, func(o Attached) bool { return o.Interface == a.Interface }) {
			out = append(out, a)
		}
	}
	for name, port := range w.Attached {
		put(Attached{Switch: w.Name, Port: port, Interface: name, Source: "configuration"})
	}
	own := p.interfaces()
	for i := range s.Ports {
		for _, n := range s.Ports[i].Neighbours {
			for _, card := range own {
				byAddress := slices.Equal(card.HardwareAddr, n.Address)
				byName := n.Port == card.Name && n.System != "" && sameHost(n.System, p.o.Host)
				if byAddress && (n.Port == card.Name || n.Port == card.HardwareAddr.String() || len(own) == 1) || byName {
					put(Attached{Switch: w.Name, Port: s.Ports[i].Name, Interface: card.Name, Source: "LLDP"})
				}
			}
		}
	}
	// A port that leads to this host alone is better than a trunk that leads to it too.
	for _, trunk := range []bool{false, true} {
		for i := range s.Ports {
			for _, card := range own {
				if vlan, found := learnt(&s.Ports[i], card.HardwareAddr, trunk); found {
					source := "bridge table"
					if vlan > 0 {
						source = fmt.Sprintf("bridge table of VLAN %d", vlan)
					}
					put(Attached{w.Name, s.Ports[i].Name, card.Name, source, trunk})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Attached) int { return strings.Compare(a.Interface, b.Interface) })
	return out
}

// learnt returns the VLAN in which the bridge has learnt a host at a port, 0 if it is not known. A
// host at a port with a neighbour is behind that; what is between them is known to be a part of its
// path only where the port is a trunk.
func learnt(port *mib.Port, address net.HardwareAddr, trunk bool) (vlan int, found bool) {
	if trunk != (len(port.Tagged) > 0) || !trunk && len(port.Neighbours) > 0 {
		return 0, false
	}
	for _, h := range port.Hosts {
		if slices.Equal(h.Address, address) {
			return h.VLAN, true
		}
	}
	return 0, false
}

// sameHost compares host names, of which either may have a domain.
func sameHost(a, b string) bool {
	short := func(s string) string { s, _, _ = strings.Cut(strings.ToLower(s), "."); return s }
	return a != "" && b != "" && short(a) == short(b)
}

// fresh reports whether a switch answered lately enough for its findings to be of now.
func (w *watched) fresh(now time.Time) bool { return now.Sub(w.at) < 3*w.every() }

// Findings returns the findings of all switches that answer, and where this host hangs.
func (p *Poller) Findings() (findings []evidence.Finding, attached []Attached) {
	now := time.Now()
	for _, w := range p.each {
		w.mu.Lock()
		if w.fresh(now) {
			findings, attached = append(findings, w.findings...), append(attached, w.attached...)
		}
		w.mu.Unlock()
	}
	return findings, attached
}

// Switches returns the state of all switches, as configured. The lists are not to be changed.
func (p *Poller) Switches() []report.Switch {
	out := make([]report.Switch, 0, len(p.each))
	for _, w := range p.each {
		w.mu.Lock()
		out = append(out, w.state)
		w.mu.Unlock()
	}
	return out
}

// Warnings returns what the answers of switches lack, one sentence each.
func (p *Poller) Warnings() []string {
	var out []string
	for _, s := range p.Switches() {
		for _, w := range s.Warnings {
			out = append(out, "switch "+s.Name+": "+w)
		}
	}
	return out
}

package switches

import (
	"context"
	"time"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
)

// State returns the switch as the last snapshot has it, with what its ports counted.
func (k *Keeper) State(address string, attached []Attached) report.Switch {
	out := report.Switch{Name: k.name, Address: address, Warnings: k.Warnings()}
	if k.last == nil {
		return out
	}
	at := k.last.Time
	out.SystemName, out.Description, out.UptimeSeconds = k.last.Name, k.last.Description, k.last.Uptime.Seconds()
	out.Time, out.ReadSeconds = &at, k.last.Took.Seconds()
	for _, d := range k.deltas() {
		p := d.port
		one := report.SwitchPort{Name: p.Name, Index: p.Index, Alias: p.Alias, Enabled: p.Enabled, Up: p.Up,
			Speed: p.Speed, Duplex: string(p.Duplex), CounterBits: p.Counters[mib.InBytes].Width,
			OverSeconds: d.over.Seconds(),
			ReceiveRate: 8 * d.rate(mib.InBytes), TransmitRate: 8 * d.rate(mib.OutBytes),
			ReceivePackets: d.rate(framesIn...), TransmitPackets: d.rate(framesOut...),
			ReceiveErrors: d.sum(mib.InErrors), TransmitErrors: d.sum(mib.OutErrors),
			ReceiveDiscards: d.sum(mib.InDiscards), TransmitDiscards: d.sum(mib.OutDiscards),
			LateCollisions: d.sum(mib.LateCollisions),
			UntaggedVLANs:  p.Untagged.String(), TaggedVLANs: p.Tagged.String()}
		for _, n := range p.Neighbours {
			one.Neighbours = append(one.Neighbours, report.SwitchNeighbour{System: n.System, Port: n.Port,
				Description: n.Description, Chassis: n.Chassis})
		}
		for _, a := range attached {
			if a.Port == p.Name {
				one.Attached = append(one.Attached, report.SwitchAttached{Interface: a.Interface, Source: a.Source,
					Trunk: a.Trunk})
			}
		}
		out.Ports = append(out.Ports, one)
	}
	out.Fill()
	return out
}

// Look reads a switch twice, with a pause between, and judges it. With a pause of 0 it reads once.
func Look(ctx context.Context, c Config, env func(string) string, host string, pause time.Duration) (report.Switch,
	[]evidence.Finding, error) {
	none := report.Switch{}
	p := New(Options{Switches: []Config{c}, Env: env, Host: host})
	w := p.each[0]
	defer func() {
		if w.agent != nil {
			_ = w.agent.Close()
		}
	}()
	first, err := p.ask(ctx, w)
	if err != nil {
		return none, nil, err
	}
	w.keeper.Take(first)
	last := first
	if pause > 0 {
		select {
		case <-ctx.Done():
			return none, nil, ctx.Err()
		case <-time.After(pause):
		}
		if last, err = p.ask(ctx, w); err != nil {
			return none, nil, err
		}
		w.keeper.Take(last)
	}
	return w.keeper.State(c.Address, p.attached(w, last)), w.keeper.Findings(), nil
}

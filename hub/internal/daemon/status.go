package daemon

import (
	"cmp"
	"slices"
	"time"

	"github.com/linerate/linerate/hub/internal/alert"
	"github.com/linerate/linerate/hub/internal/web/api"
	"github.com/linerate/linerate/internal/host/sample"
)

// status returns the state of the hub.
func (d *daemon) status() api.Status {
	s := d.store.Status()
	out := api.Status{
		Host: d.config.Host, Started: d.started, Now: time.Now(), RetentionSeconds: s.Retention.Seconds(),
		Disk:   api.DiskOf(s),
		Series: s.Series, SamplesPerSecond: s.SamplesPerSecond, Loading: s.Loading,
		Warnings: slices.Concat(d.board.warnings(), d.scheduler.Warnings(), d.watcher.Warnings(), d.writerWarnings(),
			d.lostWarnings(), d.switches.Warnings(), d.events.Status().Warnings),
	}
	if !s.Oldest.IsZero() {
		out.Oldest = &s.Oldest
	}
	return out
}

// hosts returns the interfaces that exist now.
func (d *daemon) hosts() []api.Host {
	h := api.Host{Host: d.config.Host, Interfaces: []api.Interface{}}
	r := d.board.last(sourceHost)
	if r == nil {
		return []api.Host{h}
	}
	known := make(map[string]*api.Interface)
	of := func(s *sample.Series) *api.Interface {
		name := s.Values[0]
		if known[name] == nil {
			known[name] = &api.Interface{Name: name}
		}
		return known[name]
	}
	for _, p := range r.Points {
		switch p.Series.Metric.Name {
		case "linerate_interface_info":
			i := of(p.Series)
			for n, label := range p.Series.Metric.Labels {
				switch label {
				case "driver":
					i.Driver = p.Series.Values[n]
				case "kind":
					i.Kind = p.Series.Values[n]
				case "parent":
					i.Parent = p.Series.Values[n]
				}
			}
		case "linerate_interface_up":
			of(p.Series).Up = p.Value == 1
		case "linerate_interface_speed_bits_per_second":
			of(p.Series).Speed = p.Value
		case "linerate_interface_mtu_bytes":
			of(p.Series).MTU = int(p.Value)
		}
	}
	for _, i := range known {
		h.Interfaces = append(h.Interfaces, *i)
	}
	slices.SortFunc(h.Interfaces, func(a, b api.Interface) int { return cmp.Compare(a.Name, b.Name) })
	return []api.Host{h}
}

func (d *daemon) findings() api.Findings {
	at, findings := d.board.verdict()
	return api.Findings{Time: at, Findings: findings}
}

// verdicts returns the findings as alert rules see them.
func (d *daemon) verdicts() []alert.Verdict {
	_, findings := d.board.verdict()
	out := make([]alert.Verdict, len(findings))
	for i, f := range findings {
		out[i] = alert.Verdict{Code: string(f.Code), Title: f.Title,
			Labels: map[string]string{"where": f.Where, "host": d.config.Host}}
	}
	return out
}

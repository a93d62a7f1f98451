package desk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/overview"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/report"
)

// shown is what the page shows beside the hosts. The zero value shows nothing.
type shown struct {
	mu     sync.Mutex
	read   bool // the last mesh was looked for on disk
	mesh   *report.FleetMeasureDocument
	values overview.Values
}

// meshFile has the last mesh, below the directory of the fleet.
const meshFile = "mesh.json"

// keepMesh keeps the document of a mesh as the last one.
func (d *Desk) keepMesh(doc *report.FleetMeasureDocument) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	d.shown.mu.Lock()
	d.shown.mesh, d.shown.values, d.shown.read = doc, overview.ValuesOf(doc), true
	d.shown.mu.Unlock()
	if err := durable.Replace(durable.OS(), filepath.Join(d.o.Dir, meshFile), b, 0o600); err != nil {
		return fmt.Errorf("keep the mesh: %w", err)
	}
	return nil
}

// lastMesh returns the last mesh, or nil.
func (d *Desk) lastMesh() (*report.FleetMeasureDocument, overview.Values) {
	d.shown.mu.Lock()
	defer d.shown.mu.Unlock()
	if !d.shown.read {
		d.shown.read = true
		b, err := durable.OS().ReadFile(filepath.Join(d.o.Dir, meshFile))
		var doc report.FleetMeasureDocument
		if err == nil {
			err = json.Unmarshal(b, &doc)
		}
		if err == nil {
			d.shown.mesh, d.shown.values = &doc, overview.ValuesOf(&doc)
		} else if !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("fleet: the last mesh is not readable", "error", err)
		}
	}
	return d.shown.mesh, d.shown.values
}

// source is what the page counts. Its hosts are copied once for a request.
func (d *Desk) source() *overview.Source {
	_, values := d.lastMesh()
	return &overview.Source{Hosts: d.hosts.Hosts(), Mesh: values, Now: time.Now(), Silent: SilentAfter}
}

// Counts counts the hosts of a selection. An error is one of the selection.
func (d *Desk) Counts(selection string, by overview.Measure) (*overview.Counts, error) {
	return d.source().Count(selection, by)
}

// List returns a page of hosts. An error is one of the selection.
func (d *Desk) List(selection string, order overview.Measure, after string, limit int) (*overview.Page, error) {
	return d.source().List(selection, order, after, limit)
}

// Mesh returns the last mesh by racks, or within one cell of racks.
func (d *Desk) Mesh(a, b string, rows, columns int) *overview.Grid {
	doc, _ := d.lastMesh()
	if a != "" && b != "" {
		return overview.Within(doc, a, b, rows, columns)
	}
	return overview.GridOf(doc, rows, columns)
}

// Rollouts returns the rollouts that the hub has, the newest first.
func (d *Desk) Rollouts() []overview.Rollout {
	var all []overview.Rollout
	d.conductor.Each(func(draft *conduct.Draft, begun time.Time, m *rollout.Machine) {
		r := overview.Of(draft.Plan, m)
		r.Knob, r.To, r.Started = string(draft.Knob), string(draft.To), begun
		all = append(all, r)
	})
	return all
}

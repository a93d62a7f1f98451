package api

import (
	"net/http"
	"strconv"

	"github.com/linerate/linerate/hub/internal/fleet/overview"
)

// Fleet is what the hub knows of the hosts that joined it. An error is one of the selection.
type Fleet interface {
	Counts(selection string, by overview.Measure) (*overview.Counts, error)
	List(selection string, order overview.Measure, after string, limit int) (*overview.Page, error)
	// Mesh returns the last mesh by racks, or between the hosts of racks a and b.
	Mesh(a, b string, rows, columns int) *overview.Grid
	Rollouts() []overview.Rollout // the newest first
}

// maxRollouts bounds a page of rollouts.
const maxRollouts = 20

// maxSelection is the longest selection, in bytes, as package selection has it.
const maxSelection = 4096

// fleet returns the routes of the fleet.
func (a *api) fleet() map[string]route {
	const root = "/api/linerate/v1/fleet"
	guarded := func(do func(http.ResponseWriter, *http.Request) error) route {
		return route{false, func(w http.ResponseWriter, r *http.Request) error {
			if a.Fleet == nil {
				return &problem{http.StatusNotFound, "not_found", "this hub has no fleet: it was started without --fleet"}
			}
			return do(w, r)
		}}
	}
	return map[string]route{
		root:               guarded(a.fleetCounts),
		root + "/hosts":    guarded(a.fleetHosts),
		root + "/mesh":     guarded(a.fleetMesh),
		root + "/rollouts": guarded(a.fleetRollouts),
	}
}

// selected returns the selection and the measure of a request.
func selected(r *http.Request, key string, usual overview.Measure) (string, overview.Measure, error) {
	text, by := r.Form.Get("selection"), overview.Measure(r.Form.Get(key))
	if len(text) > maxSelection {
		return "", "", bad("invalid parameter %q: it is too long", "selection")
	}
	if by == "" {
		by = usual
	}
	if by != "" && !by.Known() {
		return "", "", bad("invalid parameter %q: %.100q is no measure of a host", key, string(by))
	}
	return text, by, nil
}

func (a *api) fleetCounts(w http.ResponseWriter, r *http.Request) error {
	text, by, err := selected(r, "by", overview.Differs)
	if err != nil {
		return err
	}
	c, err := a.Fleet.Counts(text, by)
	if err != nil {
		return invalid("selection", err)
	}
	return document(w, struct {
		envelope
		*overview.Counts
	}{a.envelope("fleet"), c})
}

func (a *api) fleetHosts(w http.ResponseWriter, r *http.Request) error {
	text, order, err := selected(r, "order", "")
	if err != nil {
		return err
	}
	limit, err := count(r.Form, "limit")
	if err != nil {
		return err
	}
	after := r.Form.Get("after")
	if len(after) > maxName {
		return bad("invalid parameter %q: it is too long", "after")
	}
	p, err := a.Fleet.List(text, order, after, limit)
	if err != nil {
		return invalid("selection", err)
	}
	return document(w, struct {
		envelope
		*overview.Page
	}{a.envelope("fleet-hosts"), p})
}

func (a *api) fleetMesh(w http.ResponseWriter, r *http.Request) error {
	from := [2]int{}
	for i, key := range []string{"row_from", "column_from"} {
		var err error
		if from[i], err = count(r.Form, key); err != nil {
			return err
		}
	}
	row, column := r.Form.Get("row"), r.Form.Get("column")
	if (row == "") != (column == "") {
		return bad("invalid parameter %q: name both racks of a cell", "row")
	}
	return document(w, struct {
		envelope
		*overview.Grid
	}{a.envelope("fleet-mesh"), a.Fleet.Mesh(row, column, from[0], from[1])})
}

func (a *api) fleetRollouts(w http.ResponseWriter, r *http.Request) error {
	all := append([]overview.Rollout{}, a.Fleet.Rollouts()...)
	from, err := count(r.Form, "from")
	if err != nil {
		return err
	}
	from = min(from, len(all))
	next := ""
	if more := from + maxRollouts; more < len(all) {
		next = strconv.Itoa(more)
	}
	return document(w, struct {
		envelope
		All      int                `json:"rollouts_total"`
		Rollouts []overview.Rollout `json:"rollouts"`
		Next     string             `json:"next,omitempty"`
	}{a.envelope("fleet-rollouts"), len(all), all[from:min(len(all), from+maxRollouts)], next})
}

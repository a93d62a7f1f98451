package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/hub/internal/fleet/overview"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
)

// fleetOf answers with what it was asked.
type fleetOf struct{ asked []string }

func (f *fleetOf) Counts(selection string, by overview.Measure) (*overview.Counts, error) {
	f.asked = append(f.asked, "counts "+selection+" "+string(by))
	if selection == "colour:red" {
		return nil, errors.New("no such key")
	}
	return &overview.Counts{Selection: selection, By: by}, nil
}

func (f *fleetOf) List(selection string, order overview.Measure, after string, _ int) (*overview.Page, error) {
	f.asked = append(f.asked, "list "+selection+" "+string(order)+" "+after)
	return &overview.Page{}, nil
}

func (f *fleetOf) Mesh(a, b string, _, _ int) *overview.Grid {
	f.asked = append(f.asked, "mesh "+a+" "+b)
	return overview.GridOf(nil, 0, 0)
}

func (f *fleetOf) Rollouts() []overview.Rollout {
	return slices.Repeat([]overview.Rollout{{ID: "r", Boundary: rollout.Boundary()}}, 45)
}

func TestFleetAnswers(t *testing.T) {
	f := &fleetOf{}
	h := served(t, func(o *Options) { o.Fleet = f })
	for _, c := range []struct {
		target string
		code   int
		want   string // a part of the answer
		asked  string
	}{
		{"fleet", 200, `"schema":"linerate.hub.fleet/1"`, "counts  differs"},
		{"fleet?" + q("selection", "drift:yes", "by", "loss"), 200, `"by":"loss"`, "counts drift:yes loss"},
		{"fleet?" + q("by", "beauty"), 400, "no measure", ""},
		{"fleet?" + q("selection", "colour:red"), 400, "no such key", "counts colour:red differs"},
		{"fleet?" + q("selection", strings.Repeat("x", 5000)), 400, "too long", ""},
		{"fleet/hosts?" + q("order", "drift", "after", "7 a b"), 200, `"schema":"linerate.hub.fleet-hosts/1"`,
			"list  drift 7 a b"},
		{"fleet/hosts?" + q("limit", "-1"), 400, "", ""},
		{"fleet/mesh", 200, `"schema":"linerate.hub.fleet-mesh/1"`, "mesh  "},
		{"fleet/mesh?" + q("row", "a/b", "column", "c/d"), 200, `"cells":[]`, "mesh a/b c/d"},
		{"fleet/mesh?" + q("row", "a/b"), 400, "both", ""},
		{"fleet/rollouts", 200, `"rollouts_total":45`, ""},
		{"fleet/rollouts?" + q("from", "40"), 200, `"rollouts_total":45`, ""},
		{"fleet/rollouts?" + q("from", "4000"), 200, `"rollouts":[]`, ""},
		{"status", 200, `"fleet":true`, ""},
	} {
		f.asked = nil
		w := ask(h, "GET", "/api/linerate/v1/"+c.target, nil)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %.300s", c.target, w.Code, w.Body)
		}
		if got := strings.Join(f.asked, "; "); got != c.asked {
			t.Errorf("%s asks %q, want %q", c.target, got, c.asked)
		}
	}
	w := ask(h, "GET", "/api/linerate/v1/fleet/rollouts", nil)
	body := w.Body.String()
	if n := strings.Count(body, `"id":"r"`); n != maxRollouts || !strings.Contains(body, `"next":"20"`) {
		t.Errorf("%d rollouts on a page: %.100s", n, w.Body)
	}
	if w := ask(served(t), "GET", "/api/linerate/v1/fleet", nil); w.Code != http.StatusNotFound {
		t.Errorf("a hub without a fleet: %d", w.Code)
	}
}

package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/compare"
	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/schedule"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
)

// envelope is the beginning of every document of a hub.
type envelope struct {
	Schema   string `json:"schema"`
	Linerate string `json:"linerate"` // version of the program
}

func (a *api) envelope(name string) envelope {
	return envelope{Schema: "linerate.hub." + name + "/1", Linerate: a.Version}
}

// Status is the state of a hub: linerate.hub.status/1.
type Status struct {
	Host             string     `json:"host"`
	Started          time.Time  `json:"started"`
	Now              time.Time  `json:"now"`
	RetentionSeconds float64    `json:"retention_seconds"`
	Oldest           *time.Time `json:"oldest,omitempty"` // sample of the history; absent: the history is empty
	Disk             Disk       `json:"disk"`
	Series           int        `json:"series"`
	SamplesPerSecond float64    `json:"samples_per_second"`
	Loading          bool       `json:"loading"` // the history is loading: the hub refuses queries
	Warnings         []string   `json:"warnings"`
	Fleet            bool       `json:"fleet,omitempty"` // other hosts can join this hub
}

// Disk is the state of the disk of the history.
type Disk struct {
	Bytes               int64      `json:"bytes"`
	FreeBytes           int64      `json:"free_bytes"`
	State               string     `json:"state"` // ok, full or failing
	Since               *time.Time `json:"since,omitempty"`
	Cause               string     `json:"cause,omitempty"` // one line, for a state other than ok
	KeptInMemorySeconds float64    `json:"kept_in_memory_seconds"`
}

// DiskOf returns the disk of a store as a status has it.
func DiskOf(s record.Status) Disk {
	d := Disk{Bytes: s.Bytes, FreeBytes: s.FreeBytes, State: string(s.State), Cause: s.Cause,
		KeptInMemorySeconds: s.KeptInMemory.Seconds()}
	if !s.Since.IsZero() {
		d.Since = &s.Since
	}
	return d
}

// Host is a host in the history: linerate.hub.hosts/1.
type Host struct {
	Host       string      `json:"host"`
	Interfaces []Interface `json:"interfaces"`
}

// Interface is an interface of a host.
type Interface struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Driver string  `json:"driver"`
	Parent string  `json:"parent"`
	Up     bool    `json:"up"`
	Speed  float64 `json:"speed_bits_per_second"` // 0: not known
	MTU    int     `json:"mtu_bytes"`
}

// Findings are the current verdicts on this host: linerate.hub.findings/1. Each is as in
// linerate.diagnose/1, as report.NewDiagnose cleans it.
type Findings struct {
	Time     time.Time          `json:"time"`
	Findings []evidence.Finding `json:"findings"`
}

// Cell is the last measurement from one host to another: a part of linerate.hub.matrix/1.
type Cell = schedule.Cell

// own returns the routes of the hub's own part.
func (a *api) own() map[string]route {
	const root = "/api/linerate/v1/"
	return map[string]route{
		root + "status":       {false, a.status},
		root + "hosts":        {false, a.hosts},
		root + "events":       {false, a.events},
		root + "findings":     {false, a.findings},
		root + "switches":     {false, a.switches},
		root + "compare":      {false, a.compare},
		root + "matrix":       {false, a.matrix},
		root + "openapi.json": {false, described},
	}
}

// document answers with a document of the hub.
func document(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n'))
	return nil
}

func (a *api) status(w http.ResponseWriter, _ *http.Request) error {
	s := Status{Host: a.Host, Now: a.now().UTC(), Disk: Disk{State: string(record.DiskOK)}}
	if a.Status != nil {
		s = a.Status()
	}
	if s.Warnings == nil {
		s.Warnings = []string{}
	}
	s.Fleet = a.Fleet != nil
	return document(w, struct {
		envelope
		Status
	}{a.envelope("status"), s})
}

func (a *api) hosts(w http.ResponseWriter, _ *http.Request) error {
	all := []Host{}
	if a.Hosts != nil {
		all = append(all, a.Hosts()...)
	}
	for i := range all {
		if all[i].Interfaces == nil {
			all[i].Interfaces = []Interface{}
		}
	}
	return document(w, struct {
		envelope
		Hosts []Host `json:"hosts"`
	}{a.envelope("hosts"), all})
}

func (a *api) findings(w http.ResponseWriter, _ *http.Request) error {
	f := Findings{Time: a.now().UTC()}
	if a.Findings != nil {
		f = a.Findings()
	}
	if f.Findings == nil {
		f.Findings = []evidence.Finding{}
	}
	return document(w, struct {
		envelope
		Findings
	}{a.envelope("findings"), f})
}

// switches answers with the switches that the hub reads, each as in linerate.switch/1.
func (a *api) switches(w http.ResponseWriter, _ *http.Request) error {
	all := []report.Switch{}
	if a.Switches != nil {
		all = append(all, a.Switches()...)
	}
	for i := range all {
		all[i].Fill()
	}
	return document(w, struct {
		envelope
		Switches []report.Switch `json:"switches"`
	}{a.envelope("switches"), all})
}

func (a *api) matrix(w http.ResponseWriter, _ *http.Request) error {
	cells := []Cell{}
	if a.Matrix != nil {
		cells = append(cells, a.Matrix()...)
	}
	from, to := []string{}, []string{}
	for _, c := range cells {
		from, to = append(from, c.From), append(to, c.To)
	}
	slices.Sort(from)
	slices.Sort(to)
	return document(w, struct {
		envelope
		From  []string `json:"from"`
		To    []string `json:"to"`
		Cells []Cell   `json:"cells"`
	}{a.envelope("matrix"), slices.Compact(from), slices.Compact(to), cells})
}

// kinds are those that a request for events may name.
var kinds = []timeline.Kind{timeline.Change, timeline.Run, timeline.Measurement, timeline.Reboot, timeline.Link,
	timeline.Finding, timeline.Alert, timeline.Gap}

func (a *api) events(w http.ResponseWriter, r *http.Request) error {
	start, end, err := a.between(r, "start", "end", true)
	if err != nil {
		return err
	}
	q := timeline.Query{Host: r.Form.Get("host"), Subject: r.Form.Get("subject")}
	if q.Limit, err = count(r.Form, "limit"); err != nil {
		return err
	}
	q.Limit = min(q.Limit, timeline.MaxLimit)
	if q.PerKind, err = count(r.Form, "limit_per_kind"); err != nil {
		return err
	}
	for _, list := range r.Form["kind"] {
		for k := range strings.SplitSeq(list, ",") {
			if k == "" {
				continue
			}
			if !slices.Contains(kinds, timeline.Kind(k)) {
				return bad("invalid parameter %q: no events have the kind %.100q", "kind", k)
			}
			if !slices.Contains(q.Kinds, timeline.Kind(k)) {
				q.Kinds = append(q.Kinds, timeline.Kind(k))
			}
		}
	}
	found, truncated := []timeline.Event{}, false
	if a.Timeline != nil {
		var some []timeline.Event
		some, truncated = a.Timeline.Between(start, end, q)
		found = append(found, some...)
	}
	return document(w, struct {
		envelope
		Events    []timeline.Event `json:"events"`
		Truncated bool             `json:"truncated"` // the hub has more, all older
	}{a.envelope("events"), found, truncated})
}

// between parses an interval. An optional one defaults to the last day.
func (a *api) between(r *http.Request, from, to string, optional bool) (start, end time.Time, err error) {
	var day, now time.Time
	if optional {
		now = a.now()
		if end, err = moment(r.Form, to, now); err != nil {
			return start, end, err
		}
		day = end.Add(-24 * time.Hour)
		if day.Before(earliest) {
			day = earliest.Add(1)
		}
	} else if end, err = moment(r.Form, to, now); err != nil {
		return start, end, err
	}
	if start, err = moment(r.Form, from, day); err != nil {
		return start, end, err
	}
	if end.Before(start) {
		return start, end, invalid(to, errors.New("end timestamp must not be before start time"))
	}
	return start, end, nil
}

// stored answers with a document of the timeline as it was stored.
func (a *api) stored(w http.ResponseWriter, id string) error {
	none := &problem{http.StatusNotFound, "not_found", "no document has this id"}
	if a.Timeline == nil || !timeline.ValidID(id) {
		return none
	}
	b, err := a.Timeline.Document(id)
	if errors.Is(err, timeline.ErrNoDocument) || errors.Is(err, timeline.ErrBadID) {
		return none
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
	return nil
}

func (a *api) compare(w http.ResponseWriter, r *http.Request) error {
	o := compare.Options{Host: r.Form.Get("host"), Interface: r.Form.Get("interface"), Metrics: a.Metrics,
		Every: a.Every}
	if o.Host == "" {
		o.Host = a.Host
	}
	if len(o.Host) > maxName || len(o.Interface) > maxName {
		return bad("invalid parameter %q: it is too long", "host")
	}
	var err error
	if o.Before.Start, o.Before.End, err = a.between(r, "before_start", "before_end", false); err != nil {
		return err
	}
	if o.After.Start, o.After.End, err = a.between(r, "after_start", "after_end", false); err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return bad("%s", err)
	}
	// One at a time: a comparison reads all series of two intervals.
	select {
	case a.comparing <- struct{}{}:
		defer func() { <-a.comparing }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxCompare)
	defer cancel()
	d, err := compare.Run(ctx, a.Store.Matrix, o)
	if err != nil {
		return err
	}
	return document(w, struct {
		Linerate string `json:"linerate"`
		*compare.Document
	}{a.Version, d})
}

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
)

// envelope begins every document of a hub.
type envelope struct {
	Schema   string `json:"schema"`
	Linerate string `json:"linerate"` // version of the program
}

func (a *api) envelope(name string) envelope {
	return envelope{Schema: "linerate.hub." + name + "/1", Linerate: a.Version}
}

// Status is how a hub is doing: linerate.hub.status/1.
type Status struct {
	Host             string     `json:"host"`
	Started          time.Time  `json:"started"`
	Now              time.Time  `json:"now"`
	RetentionSeconds float64    `json:"retention_seconds"`
	Oldest           *time.Time `json:"oldest,omitempty"` // sample of the history; absent: there is none
	Disk             Disk       `json:"disk"`
	Series           int        `json:"series"`
	SamplesPerSecond float64    `json:"samples_per_second"`
	Loading          bool       `json:"loading"` // the history is being read: queries are refused until it is
	Warnings         []string   `json:"warnings"`
}

// Disk is how the disk takes what is recorded.
type Disk struct {
	Bytes               int64      `json:"bytes"`
	FreeBytes           int64      `json:"free_bytes"`
	State               string     `json:"state"` // ok, full or failing
	Since               *time.Time `json:"since,omitempty"`
	Cause               string     `json:"cause,omitempty"` // one line, of a state that is not ok
	KeptInMemorySeconds float64    `json:"kept_in_memory_seconds"`
}

// DiskOf tells of a store's disk what a status tells.
func DiskOf(s record.Status) Disk {
	d := Disk{Bytes: s.Bytes, FreeBytes: s.FreeBytes, State: string(s.State), Cause: s.Cause,
		KeptInMemorySeconds: s.KeptInMemory.Seconds()}
	if !s.Since.IsZero() {
		d.Since = &s.Since
	}
	return d
}

// Host is one whose history is here: linerate.hub.hosts/1.
type Host struct {
	Host       string      `json:"host"`
	Interfaces []Interface `json:"interfaces"`
}

// Interface is one of a host's.
type Interface struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Driver string  `json:"driver"`
	Parent string  `json:"parent"`
	Up     bool    `json:"up"`
	Speed  float64 `json:"speed_bits_per_second"` // 0: not known
	MTU    int     `json:"mtu_bytes"`
}

// Findings are the verdicts on this host as they are now: linerate.hub.findings/1. Each is as in
// linerate.diagnose/1, made clean by report.NewDiagnose.
type Findings struct {
	Time     time.Time          `json:"time"`
	Findings []evidence.Finding `json:"findings"`
}

// Cell is the last measurement from one host to another: a part of linerate.hub.matrix/1.
type Cell = schedule.Cell

// own are the routes of our own part.
func (a *api) own() map[string]route {
	const root = "/api/linerate/v1/"
	return map[string]route{
		root + "status":       {false, a.status},
		root + "hosts":        {false, a.hosts},
		root + "events":       {false, a.events},
		root + "findings":     {false, a.findings},
		root + "compare":      {false, a.compare},
		root + "matrix":       {false, a.matrix},
		root + "openapi.json": {false, described},
	}
}

// document answers with one of ours.
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

// kinds are what events can be asked for by.
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
	for _, list := range r.Form["kind"] {
		for k := range strings.SplitSeq(list, ",") {
			if k == "" {
				continue
			}
			if !slices.Contains(kinds, timeline.Kind(k)) {
				return bad("invalid parameter %q: there are no events of the kind %.100q", "kind", k)
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
		Truncated bool             `json:"truncated"` // there are more, all older
	}{a.envelope("events"), found, truncated})
}

// between reads an interval. Where it may be left out it is the last day.
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
	none := &problem{http.StatusNotFound, "not_found", "there is no document of this id"}
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
	// One at a time: it asks for everything there is of two intervals.
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

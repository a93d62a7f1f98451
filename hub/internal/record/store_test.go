package record_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/host/sample"
)

var received = &sample.Metric{Name: "linerate_interface_receive_bytes_total", Labels: []string{"interface"}}

// noon is a full hour in the past.
var noon = time.Unix(1_700_006_400, 0)

// patience is how long a query may take where its time is not under test.
const patience = time.Hour

func open(t *testing.T, o record.Options) *record.Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Host == "" {
		o.Host = "near"
	}
	if o.Queries.Time == 0 {
		o.Queries.Time = patience
	}
	s, err := record.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestWhatEndedIsNotAsked(t *testing.T) {
	s := open(t, record.Options{})
	eth0, eth1 := &sample.Series{Metric: received, Values: []string{"eth0"}},
		&sample.Series{Metric: received, Values: []string{"eth1"}}
	for i := range 60 {
		r := &sample.Reading{Time: noon.Add(time.Duration(i) * time.Second),
			Points: []sample.Point{{Series: eth0, Value: float64(i)}}}
		if i < 30 {
			r.Points = append(r.Points, sample.Point{Series: eth1, Value: float64(2 * i)})
		}
		if i == 30 {
			r.Ended = []*sample.Series{eth1}
		}
		if err := s.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Vector(t.Context(), "linerate_interface_receive_bytes_total", noon.Add(59*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Labelled{{
		Labels: map[string]string{"__name__": received.Name, "host": "near", "interface": "eth0"},
		Time:   noon.Add(59 * time.Second).UTC(),
		Value:  59,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a series that ended is still in the answer (-want +got):\n%s", diff)
	}
	rows, err := s.Matrix(t.Context(), `sum(rate(linerate_interface_receive_bytes_total[10s]))`,
		noon.Add(20*time.Second), noon.Add(29*time.Second), 9*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || !cmp.Equal(rows[0].Values, []float64{3, 3}) {
		t.Errorf("rates are %+v, want 3 each second", rows)
	}
}

func TestBadQueries(t *testing.T) {
	s := open(t, record.Options{})
	if _, err := s.Vector(t.Context(), "sum(", noon); !errors.Is(err, record.ErrBadQuery) {
		t.Errorf("no PromQL: %v, want ErrBadQuery", err)
	}
	if _, err := s.Vector(t.Context(), `"text"`, noon); !errors.Is(err, record.ErrBadQuery) {
		t.Errorf("text: %v, want ErrBadQuery", err)
	}
}

package sample_test

import (
	"slices"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/sample"
)

func sampler(t testing.TB) *sample.Sampler {
	t.Helper()
	s, err := sample.New(sample.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func read(t testing.TB, s *sample.Sampler) *sample.Reading {
	t.Helper()
	r, err := s.Read(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every point is of a metric of the catalogue, with a value for each of its labels, and no two are of the same series.
func TestReadingAgreesWithCatalogue(t *testing.T) {
	s := sampler(t)
	for range 2 {
		r := read(t, s)
		seen := make(map[string]bool)
		for _, p := range r.Points {
			m := p.Series.Metric
			if !slices.Contains(sample.Metrics(), m) {
				t.Errorf("%s is not in the catalogue", m.Name)
			}
			if len(m.Labels) != len(p.Series.Values) {
				t.Errorf("%s has labels %q and values %q", m.Name, m.Labels, p.Series.Values)
			}
			key := m.Name
			for _, v := range p.Series.Values {
				key += "\x00" + v
			}
			if seen[key] {
				t.Errorf("%s %q is there twice", m.Name, p.Series.Values)
			}
			seen[key] = true
		}
		if len(r.Warnings) > 0 {
			t.Errorf("warnings: %q", r.Warnings)
		}
		x := sample.NewIndex(r.Points)
		for _, name := range []string{"linerate_interface_receive_bytes_total", "linerate_cpu_seconds_total", "linerate_tcp_segments_sent_total"} {
			if len(x.Of(name)) == 0 {
				t.Errorf("no %s", name)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s := sampler(b)
	b.ReportAllocs()
	for b.Loop() {
		read(b, s)
	}
}

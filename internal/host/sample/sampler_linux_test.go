package sample_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
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

// Every point is of a metric of the catalogue, with a value for each of its labels, and no two are
// of the same series.
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
		for _, name := range []string{"linerate_interface_receive_bytes_total", "linerate_cpu_seconds_total",
			"linerate_tcp_segments_sent_total"} {
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

func TestRefusals(t *testing.T) {
	if _, err := sample.New(sample.Options{Root: host.Root{Dir: t.TempDir()}}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an archive: %v", err)
	}
	s := sampler(t)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Read(time.Time{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A host with 40 VLANs and a card of 64 queues stays within the series that a history is made for,
// and of more interfaces than the limit the oldest are sampled.
func TestLargeHostIsBounded(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	inWorld(t, func(w *world) {
		if out, ok := nltest.OtherSays(t, "ip", "link", "add", "q", "numtxqueues", "64", "numrxqueues", "64", "type",
			"veth", "peer", "name", "q1"); !ok {
			t.Fatal(out)
		}
		for i := range 40 {
			name := fmt.Sprintf("vlan%d", i)
			if out, ok := nltest.OtherSays(t, "ip", "link", "add", "link", "q", "name", name, "type", "macvlan"); !ok {
				t.Fatal(out)
			}
			nltest.Must(t, w.c.SetUp(name))
		}
		r := w.read()
		x := sample.NewIndex(r.Points)
		processors := len(x.Of("linerate_cpu_softirqs_total", "0")) * len(x.Of("linerate_cpu_seconds_total")) / 16
		if n := len(r.Points) - 15*processors; n > 1200 {
			t.Errorf("%d series, and those of %d processors", n, processors)
		}
		if n := len(x.Of("linerate_queue_packets_total", "q")); n != 64 {
			t.Errorf("%d queues", n)
		}
		few, err := sample.New(sample.Options{MaxInterfaces: 5})
		nltest.Must(t, err)
		defer func() { _ = few.Close() }()
		r = read(t, few)
		if got := sample.NewIndex(r.Points).Of("linerate_interface_up"); len(got) != 5 ||
			got[0].Series.Values[0] != "lo" || len(r.Warnings) != 1 {
			t.Errorf("%q, warnings %q", labels(got), r.Warnings)
		}
	})
}

package daemon

import (
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/host/sample"
)

// TestBusy checks that the busier direction counts, on this host alone, and that the rate of an
// unknown interface is unknown.
func TestBusy(t *testing.T) {
	store, err := record.Open(record.Options{Dir: t.TempDir(), Host: "near", MinFreeBytes: -1,
		Queries: record.Bounds{Time: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	d := &daemon{config: Config{Host: "near"}, store: store}
	metrics := make(map[string]*sample.Metric)
	for _, m := range sample.Metrics() {
		metrics[m.Name] = m
	}
	in := &sample.Series{Metric: metrics["linerate_interface_receive_bytes_total"], Values: []string{"eth0"}}
	out := &sample.Series{Metric: metrics["linerate_interface_transmit_bytes_total"], Values: []string{"eth0"}}
	now := time.Unix(1_700_006_400, 0)
	for i := range 11 {
		r := &sample.Reading{Time: now.Add(time.Duration(i-10) * time.Second),
			Points: []sample.Point{{Series: in, Value: float64(i) * 1e6}, {Series: out, Value: float64(i) * 5e6}}}
		if err := store.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if rate, known := d.busyAt(t.Context(), "eth0", now); !known || rate < 39e6 || rate > 41e6 {
		t.Errorf("eth0 carries %v, %v; want 40 Mb/s", rate, known)
	}
	if rate, known := d.busyAt(t.Context(), "eth1", now); known {
		t.Errorf("eth1 carries %v", rate)
	}
}

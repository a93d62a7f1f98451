package remote

import (
	"time"

	"github.com/linerate/linerate/internal/host/sample"
)

func metric(name string, kind sample.Kind, help string) *sample.Metric {
	return &sample.Metric{Name: "linerate_hub_remote_" + name, Kind: kind, Help: help}
}

var (
	metricSent    = metric("sent_samples_total", sample.Counter, "Samples that the remote write receiver has taken.")
	metricDropped = metric("dropped_samples_total", sample.Counter,
		"Samples dropped because the receiver was away for too long.")
	metricRefused = metric("refused_samples_total", sample.Counter, "Samples that the receiver refused for good.")
	metricFailed  = metric("failed_requests_total", sample.Counter, "Failed requests, which the hub retried.")
	metricQueued  = metric("queued_samples", sample.Gauge, "Samples that wait to be sent.")
	metricFailing = metric("failing_seconds", sample.Gauge, "Time since which sending fails; 0: no failure.")
)

// Metrics returns the metrics of a writer.
func Metrics() []*sample.Metric {
	return []*sample.Metric{metricSent, metricDropped, metricRefused, metricFailed, metricQueued, metricFailing}
}

// Own returns the points of the writer's own metrics as they are now. Their series are always the
// same.
func (w *Writer) Own() []sample.Point {
	s := w.Status()
	failing := 0.0
	if !s.Since.IsZero() {
		failing = time.Since(s.Since).Seconds()
	}
	values := []float64{float64(s.SentSamples), float64(s.DroppedSamples), float64(s.RefusedSamples),
		float64(s.Failures), float64(s.QueuedSamples), failing}
	points := make([]sample.Point, len(values))
	for i, v := range values {
		points[i] = sample.Point{Series: w.own[i], Value: v}
	}
	return points
}

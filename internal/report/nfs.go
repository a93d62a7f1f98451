package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/transfer"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/storage/nfs"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// SchemaNFS is the schema of the document of `linerate nfs`.
const SchemaNFS = "linerate.nfs/1"

// NFSDocument is linerate.nfs/1: where the calls of NFS mounts wait, and the options that a sweep
// found for an export. The fields after Mounts are those of a sweep.
type NFSDocument struct {
	Envelope
	Mounts     []nfs.Mount      `json:"mounts"`
	Target     string           `json:"target,omitempty"` // SERVER:/EXPORT
	Server     *NFSServer       `json:"server,omitempty"`
	Baseline   *mount.Effective `json:"baseline,omitempty"` // what a mount without the kept options gets
	Sweep      []transfer.Point `json:"sweep,omitempty"`
	LossesFrom int64            `json:"losses_from_rsize_bytes,omitempty"`
	Experiment *tune.Outcome    `json:"experiment,omitempty"`
	Best       *NFSBest         `json:"best,omitempty"`
	Seconds    float64          `json:"duration_seconds,omitempty"`
	Unfinished string           `json:"unfinished,omitempty"` // why the sweep did not complete
	Warnings   []string         `json:"warnings,omitempty"`
}

// NFSServer is what a sweep knows of the other end.
type NFSServer struct {
	Address       string                    `json:"address"`
	RoundTrip     float64                   `json:"round_trip_seconds"` // of an empty call
	Card          transfer.Card             `json:"card"`               // of this host
	File          string                    `json:"file"`
	FileBytes     int64                     `json:"file_bytes"`
	SegmentsRead  map[mount.ServerCache]int `json:"segments_by_server_cache"`
	OwnFile       bool                      `json:"own_file"`
	OneAtATime    bool                      `json:"one_call_at_a_time,omitempty"`
	SegmentSecond float64                   `json:"segment_seconds"`
}

// NFSBest is the result of a sweep as mount options.
type NFSBest struct {
	mount.Spec
	Proved  bool            `json:"proved"` // false: nothing beats the baseline
	Options string          `json:"mount_options"`
	Effect  *tune.Effect    `json:"effect,omitempty"`
	Keep    mount.Persisted `json:"keep"`
}

// NewNFS makes an NFS document.
func NewNFS(e Envelope, mounts []nfs.Mount) *NFSDocument {
	d := &NFSDocument{Envelope: e.Of(SchemaNFS), Mounts: slices.Clone(mounts)}
	FillSlices(d)
	return d
}

// NFSRun is what the document of a sweep is made of.
type NFSRun struct {
	Base       mount.Spec
	At         string // mount point for the lines to keep
	Plan       mount.Plan
	Card       transfer.Card
	Result     *transfer.Result
	Duration   time.Duration
	Unfinished string
}

// NewNFSTune makes the document of a sweep.
func NewNFSTune(e Envelope, r NFSRun) *NFSDocument {
	f, o := r.Result.Facts, *r.Result.Outcome
	o.Segments = cleanSegments(o.Segments)
	d := &NFSDocument{Envelope: e.Of(SchemaNFS), Target: r.Base.Source, Baseline: &f.Default, Experiment: &o,
		Sweep: slices.Clone(r.Result.Sweep), LossesFrom: r.Result.LossesFrom, Seconds: r.Duration.Seconds(),
		Unfinished: r.Unfinished, Warnings: slices.Clone(o.Warnings),
		Server: &NFSServer{Address: f.Ends.Server.String(), RoundTrip: f.Ends.RoundTrip.Seconds(), Card: r.Card,
			File: f.File, FileBytes: f.FileBytes, SegmentsRead: r.Result.Warm, OwnFile: r.Plan.File == "",
			OneAtATime: r.Plan.Direct, SegmentSecond: r.Plan.Segment.Seconds()},
	}
	if n := r.Result.Warm[mount.ServerReused]; n > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%d segments read parts of %s that this run had read before: the "+
			"server's memory may have answered; a larger file avoids that", n, f.File))
	}
	if len(f.Removed) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("removed what an earlier run of this host left: %q", f.Removed))
	}
	if len(f.Left) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("files of linerate on other hosts are left alone: %q", f.Left))
	}
	if f.Default.Connections > 1 && r.Base.Connections < 2 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("an earlier mount of this server shares its %d connections with the "+
			"mounts of this run, and with them its own traffic", f.Default.Connections))
	}
	if r.Unfinished == "" {
		d.Best = &NFSBest{Spec: r.Result.Best, Proved: len(o.Kept) > 0, Options: r.Result.Best.Options(), Effect: o.Final,
			Keep: r.Result.Best.Persist(r.At)}
	}
	FillSlices(d)
	return d
}

// Headline returns the result of a sweep: a word or two, and a sentence.
func (d *NFSDocument) Headline() (verdict, text string) {
	switch {
	case d.Unfinished != "":
		return "Not finished", d.Unfinished
	case d.Best != nil && d.Best.Proved && d.Best.Effect != nil:
		text := d.Best.Effect.String() + " with " + d.Best.Options
		if d.Best.ReadAhead > 0 {
			text += " and read-ahead " + unit.Bytes(d.Best.ReadAhead).String()
		}
		return "Proved", text
	case d.Experiment != nil && d.Experiment.Reason != "":
		return "Not proved", d.Experiment.Reason
	}
	return "Not proved", "no option was proven to help"
}

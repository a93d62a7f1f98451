package report

import (
	"slices"

	"github.com/linerate/linerate/internal/diagnose/disks"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/storage"
)

// SchemaDisk is the schema of the document of `linerate disk`.
const SchemaDisk = "linerate.disk/1"

// DiskDocument is linerate.disk/1: tests of a file or a device, whose figure each is, and the
// layers below. The figures at the top are those of the first test.
type DiskDocument struct {
	Envelope
	Subject               storage.Subject    `json:"subject"`
	Test                  storage.Test       `json:"test,omitempty"`
	Whose                 storage.Whose      `json:"whose"`
	ThroughputBytesPerSec float64            `json:"throughput_bytes_per_second"`
	OperationsPerSec      float64            `json:"operations_per_second"`
	Latency               *storage.Latency   `json:"latency,omitempty"`
	DeviceRatio           *float64           `json:"device_bytes_ratio,omitempty"`
	ResidentRatio         *float64           `json:"resident_ratio,omitempty"`
	Tests                 []storage.Result   `json:"tests"`
	Findings              []evidence.Finding `json:"findings"`
	Warnings              []string           `json:"warnings,omitempty"`
}

// NewDisk makes a disk document.
func NewDisk(e Envelope, subject storage.Subject, tests []storage.Result) *DiskDocument {
	d := &DiskDocument{Envelope: e.Of(SchemaDisk), Subject: subject, Whose: storage.Unknown,
		Tests: slices.Clone(tests), Findings: CleanFindings(disks.Findings(subject, tests))}
	if len(tests) > 0 {
		first := tests[0]
		d.Test, d.Whose, d.Latency = first.Test, first.Whose, first.Latency
		d.ThroughputBytesPerSec, d.OperationsPerSec = first.ThroughputBytesPerSec, first.OperationsPerSec
		d.DeviceRatio, d.ResidentRatio = first.DeviceRatio, first.ResidentRatio
	}
	FillSlices(d)
	return d
}

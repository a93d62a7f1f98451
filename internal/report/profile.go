package report

import (
	"encoding/json"
	"fmt"

	"github.com/linerate/linerate/internal/profile"
)

// SchemaProfile and SchemaProfileCompare are the names of the schemas of profiles.
const (
	SchemaProfile        = "linerate.profile/1"
	SchemaProfileCompare = "linerate.profile-compare/1"
)

// ProfileDocument is linerate.profile/1: what the CPUs of a host did while it was sampled.
type ProfileDocument struct {
	Envelope
	profile.Profile
	// With is the test that ran beside the samples; nil: none did.
	With *ProfiledTest `json:"with,omitempty"`
}

// ProfiledTest is the test that loaded the host while it was sampled.
type ProfiledTest struct {
	Target              string  `json:"target"`
	Test                string  `json:"test"`
	ThroughputBitsPerS  float64 `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerS    float64 `json:"transactions_per_second,omitempty"`
	ReceivedPacketsPerS float64 `json:"packets_per_second,omitempty"`
	// Far is the profile of the target in the same time; FarRefused says why there is none.
	Far        *profile.Profile `json:"far,omitempty"`
	FarRefused string           `json:"far_refused,omitempty"`
}

// NewProfile makes a profile document.
func NewProfile(e Envelope, p *profile.Profile) *ProfileDocument {
	d := &ProfileDocument{Envelope: e.Of(SchemaProfile), Profile: *p}
	FillSlices(d)
	return d
}

// DecodeProfile reads a profile document, as --json printed it. The error says what the document is
// instead.
func DecodeProfile(b []byte) (*ProfileDocument, error) {
	var d ProfileDocument
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	if d.Schema != SchemaProfile {
		return nil, fmt.Errorf("read profile: schema is %q, want %q", d.Schema, SchemaProfile)
	}
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	if d.With != nil && d.With.Far != nil {
		if err := d.With.Far.Check(); err != nil {
			return nil, fmt.Errorf("read profile of the far host: %w", err)
		}
	}
	return &d, nil
}

// ProfileCompareDocument is linerate.profile-compare/1: what differs between two profiles.
type ProfileCompareDocument struct {
	Envelope
	profile.Comparison
}

// NewProfileCompare makes a document of a comparison.
func NewProfileCompare(e Envelope, c *profile.Comparison) *ProfileCompareDocument {
	d := &ProfileCompareDocument{Envelope: e.Of(SchemaProfileCompare), Comparison: *c}
	FillSlices(d)
	return d
}

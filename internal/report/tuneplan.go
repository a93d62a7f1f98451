package report

import (
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// TunePlan is the plan of a tune, as printed before anything was written.
type TunePlan struct {
	Objective        string             `json:"objective"` // as `linerate tune --objective` takes it
	RoundTripSeconds float64            `json:"round_trip_seconds,omitempty"`
	SegmentSeconds   float64            `json:"segment_seconds"`  // measured part of one segment
	WarmUpSeconds    float64            `json:"warm_up_seconds"`  // left out at the start of each segment
	EstimateSeconds  float64            `json:"estimate_seconds"` // when every comparison is decided at its first look
	Notes            []string           `json:"notes,omitempty"`  // what narrows the plan
	Candidates       []PlannedCandidate `json:"candidates"`       // in the order in which they are tried
}

// PlannedCandidate is one knob of a plan.
type PlannedCandidate struct {
	Side            tune.Side        `json:"side"`
	Knob            knob.ID          `json:"knob"`
	From            knob.Value       `json:"from,omitempty"` // absent: it could not be read
	Levels          []knob.Value     `json:"levels"`
	Disturbance     knob.Disturbance `json:"disturbance"` // class, 0 to 4
	Risk            string           `json:"risk,omitempty"`
	Why             string           `json:"why,omitempty"`
	Refused         string           `json:"refused,omitempty"` // why it is not tried
	EstimateSeconds float64          `json:"estimate_seconds,omitempty"`
}

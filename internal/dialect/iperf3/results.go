package iperf3

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// results are what one end reports to the other after a test. Keys are those of the protocol.
type results struct {
	CPUTotal       float64        `json:"cpu_util_total"` // of the process, per cent of one CPU over the test
	CPUUser        float64        `json:"cpu_util_user"`
	CPUSystem      float64        `json:"cpu_util_system"`
	HasRetransmits int            `json:"sender_has_retransmits"`       // 1: counted; 0: not; -1: receives only
	Congestion     string         `json:"congestion_used,omitempty"`    // of the first connection; empty: datagrams
	Output         string         `json:"server_output_text,omitempty"` // of the server, where the client asked for it
	Streams        []streamResult `json:"streams"`                      // in the order in which they were opened

	TellsOmitted bool `json:"-"` // when read: the other end reports omitted datagrams separately (3.14)
}

// streamResult is one stream as one end saw it. Counts of datagrams start with the stream and
// include the omitted seconds.
type streamResult struct {
	ID             int     `json:"id"`              // see streamID
	Bytes          int64   `json:"bytes"`           // payload in the measured part
	Retransmits    int64   `json:"retransmits"`     // segments, of the sender; -1: unknown
	JitterSeconds  float64 `json:"jitter"`          // receiver of datagrams, RFC 1889
	Errors         int64   `json:"errors"`          // datagrams lost
	OmittedErrors  int64   `json:"omitted_errors"`  // of Errors: before the measured part (3.14)
	Packets        int64   `json:"packets"`         // datagrams sent, or the highest sequence number received
	OmittedPackets int64   `json:"omitted_packets"` // of Packets (3.14)
	StartSeconds   float64 `json:"start_time"`      // since the measured part began: 0
	EndSeconds     float64 `json:"end_time"`        // when the sender stopped, or when the receiver had its last byte
}

// forOld converts the results for a program before 3.14. It subtracts its own count of the omitted
// datagrams from Packets but nothing from Errors, so it would show the loss of the whole test
// relative to a part of its datagrams.
func (r results) forOld() results {
	r.Streams = slices.Clone(r.Streams)
	for i := range r.Streams {
		r.Streams[i].Errors -= r.Streams[i].OmittedErrors
		r.Streams[i].OmittedErrors = 0
	}
	return r
}

// encode returns the message of the results. -1 is sent as such: 3.12 reads both that and its own
// 2^64-1.
func (r results) encode() ([]byte, error) { return json.Marshal(r) }

// decodeResults parses the results of the other end of a test with that many streams. Every stream
// must be present exactly once.
func decodeResults(body []byte, streams int) (results, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return results{}, fmt.Errorf("results: %w", err)
	}
	r := results{
		CPUTotal: o.number("cpu_util_total"), CPUUser: o.number("cpu_util_user"),
		CPUSystem:      o.number("cpu_util_system"),
		HasRetransmits: int(o.count("sender_has_retransmits")), Congestion: o.text("congestion_used", 64),
		Output: o.text("server_output_text", maxServerResultsBytes),
	}
	var list []object
	if err := json.Unmarshal(o["streams"], &list); err != nil {
		return results{}, fmt.Errorf("results: streams: %w", err)
	}
	if len(list) != streams {
		return results{}, fmt.Errorf("results: %d streams instead of %d", len(list), streams)
	}
	r.Streams = make([]streamResult, streams)
	for _, s := range list {
		one := streamResult{
			ID: int(s.whole("id", math.MaxInt32)), Bytes: s.count("bytes"), Retransmits: s.count("retransmits"),
			JitterSeconds: max(s.number("jitter"), 0), Errors: s.count("errors"), Packets: s.count("packets"),
			OmittedErrors: s.count("omitted_errors"), OmittedPackets: s.count("omitted_packets"),
			StartSeconds: s.number("start_time"), EndSeconds: s.number("end_time"),
		}
		r.TellsOmitted = r.TellsOmitted || s.has("omitted_packets")
		index := max(one.ID-2, 0)
		if one.ID < 1 || one.ID == 2 || index >= streams {
			return results{}, fmt.Errorf("results: no stream %d", one.ID)
		}
		if r.Streams[index].ID != 0 {
			return results{}, fmt.Errorf("results: stream %d twice", one.ID)
		}
		if one.Bytes < 0 || one.Packets < 0 {
			return results{}, errors.New("results: a negative count")
		}
		r.Streams[index] = one
	}
	return r, nil
}

// count returns a number that 3.12 and 3.13 print as unsigned with 64 bits: -1 is
// 18446744073709551615.
func (o object) count(key string) int64 {
	if n := o.number(key); n >= 1<<63 {
		return -1
	}
	return o.whole(key, math.MaxInt64)
}

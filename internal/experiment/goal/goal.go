package goal

import (
	"strings"
)

// Goal is the quantity that a tune increases.
type Goal string

// The goals.
const (
	Throughput Goal = "throughput" // payload received, bits per second
	Latency    Goal = "latency"    // transactions per second, the inverse of the time of one
	Packets    Goal = "packets"    // small datagrams received, packets per second
)

// goals is the order of the goals in messages.
var goals = [...]Goal{Throughput, Latency, Packets}

// Unit returns the unit of a goal's figures, in the form of a document key: bits_per_second,
// transactions_per_second or packets_per_second.
func (g Goal) Unit() string {
	switch g {
	case Latency:
		return "transactions_per_second"
	case Packets:
		return "packets_per_second"
	}
	return "bits_per_second"
}

// Op is a comparison.
type Op string

// The comparisons. Measured numbers have no last digit, so an equals sign changes nothing.
const (
	Less    Op = "<"
	AtMost  Op = "<="
	More    Op = ">"
	AtLeast Op = ">="
)

// upper reports whether the bound is an upper limit.
func (o Op) upper() bool { return o == Less || o == AtMost }

// Bound is one condition for the result.
type Bound struct {
	Term  string  // a name of Terms
	Op    Op      // on the good side of the term
	Value float64 // in the unit of the term
	Text  string  // the value as it was typed: "5 ms"
	At    int     // byte in the objective's text at which the bound begins
}

// String returns the bound in the notation of Parse.
func (b Bound) String() string { return b.Term + string(b.Op) + b.Text }

// Objective is the request to a tune.
type Objective struct {
	Goal   Goal
	Bounds []Bound // in the order given; of two on one term both hold
}

// String returns an objective in a form that Parse reads as the same one.
func (o Objective) String() string {
	if len(o.Bounds) == 0 {
		return string(o.Goal)
	}
	texts := make([]string, len(o.Bounds))
	for i, b := range o.Bounds {
		texts[i] = b.String()
	}
	return string(o.Goal) + " where " + strings.Join(texts, " and ")
}

// Limit is a bound with the name under which segments report the quantity.
type Limit struct {
	Guard   string  // rtt_p99_seconds, retransmit_ratio, …
	Value   float64 // the worst allowed value, in the unit of the guard
	AtLeast bool    // the quantity must not fall below Value; otherwise it must not exceed it
}

// Limits returns the tightest bound of each quantity, in the order of first mention.
func (o Objective) Limits() []Limit {
	var out []Limit
	at := map[string]int{}
	for _, b := range o.Bounds {
		t := terms[b.Term]
		l := Limit{Guard: t.guard, Value: b.Value, AtLeast: !b.Op.upper()}
		i, seen := at[t.guard]
		switch {
		case !seen:
			at[t.guard] = len(out)
			out = append(out, l)
		case l.AtLeast:
			out[i].Value = max(out[i].Value, l.Value)
		default:
			out[i].Value = min(out[i].Value, l.Value)
		}
	}
	return out
}

// Asks reports whether a bound limits a quantity, by the name under which segments report it.
func (o Objective) Asks(guard string) bool {
	for _, b := range o.Bounds {
		if terms[b.Term].guard == guard {
			return true
		}
	}
	return false
}

// Guard returns the name under which segments report the quantity of the bound.
func (b Bound) Guard() string { return terms[b.Term].guard }

// Holds reports whether a value meets the bound.
func (b Bound) Holds(v float64) bool {
	if b.Op.upper() {
		return v <= b.Value
	}
	return v >= b.Value
}

// Format returns a value of the bound's quantity with its unit, for users.
func (b Bound) Format(v float64) string { return terms[b.Term].written.format(v) }

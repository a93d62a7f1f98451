package calc

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Unit is the unit of a quantity, as it is printed.
type Unit string

// The units. The empty one is a plain number or a share.
const (
	Seconds       Unit = "s"
	PerSecond     Unit = "1/s"
	BitsPerSecond Unit = "bit/s"
	Bytes         Unit = "B"
	Frames        Unit = "frames"
	Number        Unit = ""
)

// Quantity is a named number. Formula is empty for what was given.
type Quantity struct {
	Name    string
	Value   float64
	Unit    Unit
	Formula string
}

// Result is the answer to one question.
type Result struct {
	What    string // moderation, window, burst, bus, polling
	Formula string // the principal one
	Given   []Quantity
	Values  []Quantity
	Notes   []string // conditions under which the values hold
}

// errTooLarge is the error for values that no duration and no number of a document can hold.
var errTooLarge = errors.New("a value is too large to calculate with")

// given adds an input that is there.
//
//go:noinline // 27 copies took 9 kB
func (r *Result) given(name string, value float64, unit Unit) {
	if value > 0 {
		r.Given = append(r.Given, Quantity{Name: name, Value: value, Unit: unit})
	}
}

// add adds a value with its formula.
//
//go:noinline // 41 copies took 13 kB
func (r *Result) add(name string, value float64, unit Unit, formula string, args ...any) {
	r.Values = append(r.Values, Quantity{Name: name, Value: value, Unit: unit, Formula: fmt.Sprintf(formula, args...)})
}

// finish refuses values that JSON cannot hold, and nothing at all.
func (r *Result) finish() (*Result, error) {
	for _, q := range r.Values {
		if math.IsInf(q.Value, 0) || math.IsNaN(q.Value) {
			return nil, fmt.Errorf("calculate %s: %w", q.Name, errTooLarge)
		}
	}
	return r, nil
}

// missing is the error for a question that lacks something.
func missing(what string, needs ...string) error {
	return fmt.Errorf("calculate %s: give %s", what, strings.Join(needs, ", or "))
}

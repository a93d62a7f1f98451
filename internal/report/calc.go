package report

import "github.com/linerate/linerate/internal/host/calc"

// SchemaCalc is the document of a calculation.
const SchemaCalc = "linerate.calc/1"

// CalcDocument is linerate.calc/1: what was given, what follows from it, and by which formulas.
type CalcDocument struct {
	Envelope
	What    string         `json:"what"`    // moderation, window, burst, bus or polling
	Formula string         `json:"formula"` // the principal one
	Given   []CalcQuantity `json:"given"`
	Values  []CalcQuantity `json:"values"`
	Notes   []string       `json:"notes,omitempty"`
}

// CalcQuantity is a number with its unit: s, 1/s, bit/s, B or frames; none is a plain number or a
// share.
type CalcQuantity struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Formula string  `json:"formula,omitempty"` // absent for what was given
}

// NewCalc makes the document of a calculation.
func NewCalc(e Envelope, r *calc.Result) *CalcDocument {
	quantities := func(all []calc.Quantity) []CalcQuantity {
		made := make([]CalcQuantity, 0, len(all))
		for _, q := range all {
			made = append(made, CalcQuantity{Name: q.Name, Value: q.Value, Unit: string(q.Unit), Formula: q.Formula})
		}
		return made
	}
	return &CalcDocument{Envelope: e.Of(SchemaCalc), What: r.What, Formula: r.Formula, Given: quantities(r.Given),
		Values: quantities(r.Values), Notes: r.Notes}
}

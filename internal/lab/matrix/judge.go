package matrix

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/report"
)

// judge reads a verdict and decides whether it is right.
func judge(m *report.MatrixCase, c Case) {
	var d struct {
		Findings []report.MatrixFinding `json:"findings"`
	}
	if err := json.Unmarshal(m.Document, &d); err != nil {
		m.Reason = fmt.Sprintf("read the verdict's document: %v", err)
		return
	}
	m.Found = d.Findings
	for _, f := range m.Found {
		m.Warned = m.Warned || f.Severity == "warning" || f.Severity == "critical"
	}
	place := func(code string) int {
		return slices.IndexFunc(m.Found, func(f report.MatrixFinding) bool { return f.Code == code })
	}
	if m.Pair {
		// In any order: the case asks which faults exist, not which of them costs more.
		first, second := place(m.Expected[0]), place(m.Expected[1])
		m.Right = first >= 0 && second >= 0
		if m.Right {
			m.Rank = max(first, second) + 1
		}
		return
	}
	// The best place among the codes that count as right.
	for _, code := range m.Expected {
		if at := place(code) + 1; at > 0 && (m.Rank == 0 || at < m.Rank) {
			m.Rank = at
		}
	}
	// A sound world is right only if no further finding is a warning: a user would act on it.
	m.Right = m.Rank == 1 && !(c.Level == "" && m.Warned)
}

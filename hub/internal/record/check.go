package record

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// CheckQuery tells whether a text is PromQL, without asking anything: for settings that are read
// long before their queries are asked. The error is ErrBadQuery.
func CheckQuery(query string) error {
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(query); err != nil {
		return fmt.Errorf("%w: %v", ErrBadQuery, err)
	}
	return nil
}

package record

import (
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/promql"
)

// Errors of queries, for errors.Is; the text has the details.
var (
	ErrBadQuery = errors.New("bad query")               // not PromQL, or an invalid step or time
	ErrTooMuch  = errors.New("query asks for too much") // more samples, points or series than the bounds allow
	ErrTimeout  = errors.New("query took too long")
	ErrCanceled = errors.New("query was canceled") // by the client
	ErrBusy     = errors.New("too many queries at a time")
	ErrLoading  = errors.New("history is loading") // the store repairs its log: retry soon
	ErrClosed   = errors.New("history is closed")
)

// typed wraps errors of the engine in those above.
func typed(err error) error {
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		samples  promql.ErrTooManySamples
	)
	var inside promql.ErrStorage
	if errors.As(err, &inside) {
		return inside.Err
	}
	switch {
	case errors.As(err, &timeout):
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	case errors.As(err, &canceled):
		return fmt.Errorf("%w: %w", ErrCanceled, err)
	case errors.As(err, &samples):
		return fmt.Errorf("%w: %w", ErrTooMuch, err)
	}
	return err
}

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/firewall/tally"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
)

// Largest lines, in bytes.
const (
	maxQuestion = 256
	maxOrder    = order.MaxEnvelope/3*4 + 100 // in base64
	maxDocument = 16 << 20
	maxAnswer   = maxDocument + 1<<10
)

// ask names a question.
type ask string

const (
	askHello   ask = "hello"
	askStamp   ask = "stamp"
	askHistory ask = "history"
	askRules   ask = "rules"

	askRuns         ask = "runs"
	askRun          ask = "run"
	askMeasurements ask = "measurements"
	askMeasurement  ask = "measurement"

	askOrder  ask = "order"
	askOrders ask = "orders"
)

// asks returns the two questions about a kind: for the list, and for one document.
func asks(kind runs.Kind) (list, one ask) {
	if kind == runs.Measurements {
		return askMeasurements, askMeasurement
	}
	return askRuns, askRun
}

// question is one line of a client.
type question struct {
	Ask ask    `json:"ask"`
	ID  string `json:"id,omitempty"`
	// Order is a signed order, as package order writes it; the connected process asserts nothing
	// about it.
	Order []byte `json:"order,omitempty"`
}

// kind returns the kind of stored documents that a question is about.
func (q question) kind() runs.Kind {
	if q.Ask == askMeasurements || q.Ask == askMeasurement {
		return runs.Measurements
	}
	return runs.Tunes
}

// answer is one line of a server: the fields for one question, or an error.
type answer struct {
	Version  string           `json:"version,omitempty"`
	State    string           `json:"state,omitempty"`
	Stamp    string           `json:"stamp,omitempty"`
	Changes  []journal.Change `json:"changes,omitempty"`
	Rules    []tally.Count    `json:"rules,omitempty"`
	Left     int              `json:"rules_left,omitempty"` // counters that are not in Rules
	Runs     []string         `json:"runs,omitempty"`
	Document json.RawMessage  `json:"document,omitempty"`
	Order    *order.Answer    `json:"order,omitempty"`
	Report   *executor.Report `json:"report,omitempty"`
	Error    string           `json:"error,omitempty"`
	Missing  bool             `json:"missing,omitempty"` // with Error: the object does not exist
}

var (
	errNotAsked    = errors.New("not a question of this protocol")
	errNotAnAnswer = errors.New("not an answer of this protocol")
)

// ErrTooLarge reports a document that is too large to be sent.
var ErrTooLarge = fmt.Errorf("larger than %d MiB", maxDocument>>20)

// parseQuestion parses one line, without its end.
func parseQuestion(line []byte) (question, error) {
	var q question
	if len(line) > maxOrder {
		return q, errNotAsked
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		return question{}, errNotAsked
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return question{}, errNotAsked
	}
	if len(line) > maxQuestion && q.Ask != askOrder || (len(q.Order) > 0) != (q.Ask == askOrder) {
		return question{}, errNotAsked
	}
	switch q.Ask {
	case askOrder:
		if q.ID != "" || len(q.Order) > order.MaxEnvelope {
			return question{}, errNotAsked
		}
	case askOrders:
		if q.ID != "" && !order.ValidName(q.ID) {
			return question{}, fmt.Errorf("%.100q is not the name of a rollout", q.ID)
		}
	case askHello, askStamp, askHistory, askRules, askRuns, askMeasurements:
		if q.ID != "" {
			return question{}, errNotAsked
		}
	case askRun, askMeasurement:
		if !runs.Name(q.ID) {
			return question{}, fmt.Errorf("%q is not the id of a run", q.ID)
		}
	default:
		return question{}, errNotAsked
	}
	return q, nil
}

// parseAnswer parses one line, without its end. It returns the server's error, which is
// fs.ErrNotExist if no object has that name.
func parseAnswer(line []byte) (answer, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, fmt.Errorf("%w: %w", errNotAnAnswer, err)
	}
	if a.Error != "" {
		err := fmt.Errorf("answer of the agent: %.500q", a.Error)
		if a.Missing {
			err = &missingError{err}
		}
		return answer{}, err
	}
	for _, id := range a.Runs {
		if !runs.Name(id) {
			return answer{}, fmt.Errorf("%w: %.100q is not the id of a run", errNotAnAnswer, id)
		}
	}
	return a, nil
}

// missingError makes errors.Is report fs.ErrNotExist for an error of another process.
type missingError struct{ error }

func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

// GroupError reports a group that does not exist.
type GroupError struct {
	Group string
	Err   error
}

func (e *GroupError) Error() string { return fmt.Sprintf("find group %q: %v", e.Group, e.Err) }

func (e *GroupError) Unwrap() error { return e.Err }

// Hint returns what the user can do.
func (e *GroupError) Hint() string {
	return "make it with `groupadd --system " + e.Group + "`, or name another one with --group"
}

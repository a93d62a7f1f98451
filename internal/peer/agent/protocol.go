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
)

// What a line may have, in bytes.
const (
	maxQuestion = 256
	maxDocument = 16 << 20
	maxAnswer   = maxDocument + 1<<10
)

// ask names a question.
type ask string

const (
	askHello   ask = "hello"
	askStamp   ask = "stamp"
	askHistory ask = "history"

	askRuns         ask = "runs"
	askRun          ask = "run"
	askMeasurements ask = "measurements"
	askMeasurement  ask = "measurement"
)

// asks are the questions for the list of a kind, and for one of them.
func asks(kind runs.Kind) (list, one ask) {
	if kind == runs.Measurements {
		return askMeasurements, askMeasurement
	}
	return askRuns, askRun
}

// question is what a client says.
type question struct {
	Ask ask    `json:"ask"`
	ID  string `json:"id,omitempty"`
}

// kind is what a question about stored documents is about.
func (q question) kind() runs.Kind {
	if q.Ask == askMeasurements || q.Ask == askMeasurement {
		return runs.Measurements
	}
	return runs.Tunes
}

// answer is what a server says: the fields of one question, or an error.
type answer struct {
	Version  string           `json:"version,omitempty"`
	State    string           `json:"state,omitempty"`
	Stamp    string           `json:"stamp,omitempty"`
	Changes  []journal.Change `json:"changes,omitempty"`
	Runs     []string         `json:"runs,omitempty"`
	Document json.RawMessage  `json:"document,omitempty"`
	Error    string           `json:"error,omitempty"`
	Missing  bool             `json:"missing,omitempty"` // with Error: there is no such thing
}

var (
	errNotAsked    = errors.New("not a question of this protocol")
	errNotAnAnswer = errors.New("not an answer of this protocol")
)

// ErrTooLarge says that a document is larger than what is handed on.
var ErrTooLarge = fmt.Errorf("larger than %d MiB", maxDocument>>20)

// parseQuestion reads one line, without its end.
func parseQuestion(line []byte) (question, error) {
	var q question
	if len(line) > maxQuestion {
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
	switch q.Ask {
	case askHello, askStamp, askHistory, askRuns, askMeasurements:
		if q.ID != "" {
			return question{}, errNotAsked
		}
	case askRun, askMeasurement:
		if !runs.Name(q.ID) {
			return question{}, fmt.Errorf("%q is no id of a run", q.ID)
		}
	default:
		return question{}, errNotAsked
	}
	return q, nil
}

// parseAnswer reads one line, without its end. What the server could not do is an error;
// fs.ErrNotExist where there is nothing of that name.
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
			return answer{}, fmt.Errorf("%w: %.100q is no id of a run", errNotAnAnswer, id)
		}
	}
	return a, nil
}

// missingError makes errors.Is with fs.ErrNotExist true for what another process has said.
type missingError struct{ error }

func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

// GroupError says that a group was not found.
type GroupError struct {
	Group string
	Err   error
}

func (e *GroupError) Error() string { return fmt.Sprintf("find group %q: %v", e.Group, e.Err) }

func (e *GroupError) Unwrap() error { return e.Err }

// Hint is what to do next.
func (e *GroupError) Hint() string {
	return "make it with `groupadd --system " + e.Group + "`, or name another one with --group"
}

package peer

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// Protocol is the version of the messages. Both ends must have the same one.
const Protocol = 1

// Message types, see the package comment.
const (
	msgHello    = "hello"
	msgSnapshot = "snapshot"
	msgHistory  = "history"
	msgRead     = "knob.read"
	msgApply    = "change.apply"
	msgUndo     = "change.undo"
	msgCommit   = "change.commit"
	msgRunOpen  = "run.open"
	msgRunClose = "run.close"
	msgCancel   = "cancel"
	msgAnswer   = "answer"
	msgNote     = "note"

	testPrefix = "test." // package traffic's own
)

// call is the body of every message to the far side but those of tests. The id is the client's own
// choice and means nothing to the far side; it comes back in the answer.
type call struct {
	ID   uint64          `json:"id"`
	Body json.RawMessage `json:"body,omitempty"`
}

// answer is what the far side makes of a call: a body or a fault.
type answer struct {
	ID    uint64          `json:"id"`
	Body  json.RawMessage `json:"body,omitempty"`
	Fault *fault          `json:"fault,omitempty"`
}

// note tells a client what its call waits for.
type note struct {
	ID   uint64 `json:"id"`
	Text string `json:"text"`
}

// helloCall is how a client introduces itself. The far side compares the protocol before anything
// else is said.
type helloCall struct {
	Protocol int    `json:"protocol"`
	Linerate string `json:"linerate"`
	Host     string `json:"host"`
}

// Info is what the far side says of itself.
type Info struct {
	Protocol    int    `json:"protocol"`
	Linerate    string `json:"linerate"` // its version
	Host        string `json:"host"`     // its name for itself
	OS          string `json:"os"`       // GOOS
	Arch        string `json:"arch"`     // GOARCH
	AllowTuning bool   `json:"allow_tuning"`
}

// readCall and readAnswer ask for one knob.
type readCall struct {
	Knob knob.ID `json:"knob"`
}

type readAnswer struct {
	Value knob.Value `json:"value"`
}

// applyCall asks for trials. For counts from this call on and is bounded by the far side; 0 asks
// for its bound.
type applyCall struct {
	Reason   string         `json:"reason"`
	For      time.Duration  `json:"for_nanoseconds"`
	Settings []knob.Setting `json:"settings"`
}

// applyAnswer may come together with a fault: the ids are those of changes in force.
type applyAnswer struct {
	IDs []string `json:"ids"`
}

// changesCall names changes to take back or to make stay.
type changesCall struct {
	IDs []string `json:"ids"`
}

// undoAnswer tells what became of each change, also where a fault comes with it.
type undoAnswer struct {
	Outcomes []journal.Outcome `json:"outcomes"`
}

// historyAnswer is the far journal, oldest change first.
type historyAnswer struct {
	Changes []journal.Change `json:"changes"`
}

// runCall says what is going to run, so that it can be refused at once, or waits for as much of the
// host as it needs.
type runCall struct {
	Spec traffic.Spec `json:"spec"`
}

// runAnswer admits one test; its data connections show the token.
type runAnswer struct {
	Token wire.Token `json:"token"`
}

// cancelCall names the call that is given up. It has no id of its own because it gets no answer.
type cancelCall struct {
	Cancel uint64 `json:"cancel"`
}

// encode makes the body of a call or an answer.
func encode(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}

// decode reads a body into v; an absent one leaves v as it is. Fields that this version does not
// know are let pass, so that a newer peer of the same protocol version may say more.
func decode(raw json.RawMessage, v any) error {
	if v == nil || len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return errors.Join(wire.ErrProtocol, err)
	}
	return nil
}

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
	msgProfile  = "profile"
	msgRead     = "knob.read"
	msgApply    = "change.apply"
	msgUndo     = "change.undo"
	msgCommit   = "change.commit"
	msgConfirm  = "change.confirm"
	msgRunOpen  = "run.open"
	msgRunClose = "run.close"
	msgCancel   = "cancel"
	msgAnswer   = "answer"
	msgNote     = "note"

	testPrefix = "test." // package traffic's own
)

// call is the body of every message to the far side except those of tests. The client chooses the
// id, which means nothing to the far side and comes back in the answer.
type call struct {
	ID   uint64          `json:"id"`
	Body json.RawMessage `json:"body,omitempty"`
}

// answer is the far side's response to a call: a body or a fault.
type answer struct {
	ID    uint64          `json:"id"`
	Body  json.RawMessage `json:"body,omitempty"`
	Fault *fault          `json:"fault,omitempty"`
}

// note reports to a client what its call waits for.
type note struct {
	ID   uint64 `json:"id"`
	Text string `json:"text"`
}

// helloCall is how a client introduces itself. The far side compares the protocol version first.
type helloCall struct {
	Protocol int    `json:"protocol"`
	Linerate string `json:"linerate"`
	Host     string `json:"host"`
	Confirms bool   `json:"confirms,omitempty"` // it confirms its commits over a new connection
}

// Info is what the far side reports about itself.
type Info struct {
	Protocol int    `json:"protocol"`
	Linerate string `json:"linerate"` // its version
	// As the host names itself; Client.Info adds its target where this host has that name.
	Host        string `json:"host"`
	OS          string `json:"os"`   // GOOS
	Arch        string `json:"arch"` // GOARCH
	AllowTuning bool   `json:"allow_tuning"`
	Tuning      string `json:"tuning,omitempty"` // what may be changed, for knob.ParsePermission
}

// readCall and readAnswer read one knob.
type readCall struct {
	Knob knob.ID `json:"knob"`
}

type readAnswer struct {
	Value knob.Value `json:"value"`
}

// applyCall requests trials. For counts from this call on, and the far side bounds it; 0 requests
// that bound.
type applyCall struct {
	Reason   string         `json:"reason"`
	Run      string         `json:"run,omitempty"` // name of the run at the near end, for the far journal
	For      time.Duration  `json:"for_nanoseconds"`
	Settings []knob.Setting `json:"settings"`
}

// applyAnswer may come with a fault: its ids are those of changes in force.
type applyAnswer struct {
	IDs []string `json:"ids"`
}

// changesCall names changes to undo or to commit.
type changesCall struct {
	IDs []string `json:"ids"`
}

// commitAnswer asks for a new connection with this token, which confirms the commit. Without a
// token the commit is done.
type commitAnswer struct {
	Token  *wire.Token   `json:"token,omitempty"`
	Within time.Duration `json:"within_nanoseconds,omitempty"`
}

// undoAnswer has the outcome of each change, even if a fault comes with it.
type undoAnswer struct {
	Outcomes []journal.Outcome `json:"outcomes"`
}

// historyAnswer is the far journal, oldest change first.
type historyAnswer struct {
	Changes []journal.Change `json:"changes"`
}

// runCall announces a test, so that the far side can refuse it at once, or make it wait for the
// part of the host that it needs.
type runCall struct {
	Spec traffic.Spec `json:"spec"`
}

// runAnswer admits one test. Its data connections present the token.
type runAnswer struct {
	Token wire.Token `json:"token"`
}

// cancelCall names the call to drop. It has no id of its own because it gets no answer.
type cancelCall struct {
	Cancel uint64 `json:"cancel"`
}

// encode encodes the body of a call or an answer.
func encode(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}

// decode decodes a body into v; without a body, v stays as it is. Unknown fields are ignored, so
// that a newer peer of the same protocol version may send more.
func decode(raw json.RawMessage, v any) error {
	if v == nil || len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return errors.Join(wire.ErrProtocol, err)
	}
	return nil
}

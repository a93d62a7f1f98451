package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Rates and sizes.
const (
	BeatEvery  = 30 * time.Second
	MostAnswer = 1 << 10   // bytes of an answer; more would drown the hub that gathers ten thousand
	PartBytes  = 128 << 10 // of a document
	MostParts  = 64        // of a document: 8 MiB packed
	Credit     = 4         // parts that are asked for at a time
)

// The kinds of messages: the last part of a subject.
const (
	KindBeat  = "beat"
	KindAsk   = "ask"
	KindFetch = "fetch"
	KindRenew = "renew"
	KindTask  = "task"
	kindReply = "r."
	kindDone  = "t."
)

// Reply returns the kind of the messages that answer a token.
func Reply(token string) string { return kindReply + token }

// TaskDone returns the kind of the message that answers the task with this token.
func TaskDone(token string) string { return kindDone + token }

// Beat is a sign of life.
type Beat struct {
	Instance string `json:"instance"` // drawn when the node starts
	Machine  string `json:"machine,omitempty"`
	Version  string `json:"version"`
	Facts    string `json:"facts,omitempty"` // hash; empty: none yet
}

// Ask is a question with a small answer.
type Ask struct {
	ID   string   `json:"id"` // a repeated one gets the same answer
	Verb string   `json:"verb"`
	Args []string `json:"args,omitempty"`
	// Token names where the answer goes: the kind Reply(Token) from the host.
	Token string `json:"token"`
	// SpreadMS is the time over which the hosts spread their answers.
	SpreadMS int64 `json:"spread_ms,omitempty"`
}

// Answer answers an Ask.
type Answer struct {
	Data  json.RawMessage `json:"data,omitempty"`
	Error string          `json:"error,omitempty"`
}

// ErrUnknown is the text of an answer to a verb that a node, older than its hub, does not have.
const ErrUnknown = "not known to this version"

// Fetch asks for parts of a document.
type Fetch struct {
	Document string `json:"document"`
	Token    string `json:"token"`
	Have     string `json:"have,omitempty"` // hash of what the hub has
	Hash     string `json:"hash,omitempty"` // of the document that From belongs to
	From     int    `json:"from,omitempty"` // first part wanted
	Count    int    `json:"count,omitempty"`
}

// Part is a part of a document, or why there is none. On the wire the bytes follow the header.
type Part struct {
	Hash   string `json:"hash,omitempty"` // of the whole, unpacked
	Bytes  int64  `json:"bytes,omitempty"`
	Number int    `json:"number"`
	Parts  int    `json:"parts,omitempty"`
	Same   bool   `json:"same,omitempty"` // the hub has it: no bytes follow
	Error  string `json:"error,omitempty"`
	Absent bool   `json:"absent,omitempty"` // with Error: there is no such document

	Data []byte `json:"-"` // gzip, RFC 1952
}

// Encode returns the part for the wire.
func (p Part) Encode() ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return append(append(b, '\n'), p.Data...), nil
}

var errNoPart = errors.New("not a part of a document")

// DecodePart reads what Encode returned. Data is a part of b.
func DecodePart(b []byte) (Part, error) {
	var p Part
	head, data, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return p, errNoPart
	}
	if err := json.Unmarshal(head, &p); err != nil {
		return p, fmt.Errorf("%w: %w", errNoPart, err)
	}
	if p.Number < 0 || p.Parts < 0 || p.Parts > MostParts || p.Number > p.Parts || len(data) > PartBytes {
		return p, errNoPart
	}
	p.Data = data
	return p, nil
}

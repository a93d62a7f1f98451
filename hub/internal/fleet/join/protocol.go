package join

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
)

// Longest lines, in bytes.
const (
	longestQuestion = 16 << 10
	longestAnswer   = 64 << 10
)

// within is how long an exchange may take.
const within = 60 * time.Second

// The operations.
const (
	opJoin   = "join"
	opRenew  = "renew"
	opRotate = "rotate"
)

type question struct {
	Op            string `json:"op"`
	Invitation    []byte `json:"invitation,omitempty"`
	Secret        []byte `json:"secret,omitempty"`
	Key           string `json:"key"`
	Next          string `json:"next,omitempty"`
	Identity      string `json:"identity,omitempty"`
	Machine       string `json:"machine,omitempty"`
	Name          string `json:"name,omitempty"`
	Signature     []byte `json:"signature"`
	NextSignature []byte `json:"next_signature,omitempty"`
}

type answer struct {
	ID         string    `json:"id,omitempty"`
	Identity   string    `json:"identity,omitempty"`
	Issued     time.Time `json:"issued,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
	Groups     []string  `json:"groups,omitempty"`
	Bus        []string  `json:"bus,omitempty"`
	Roots      string    `json:"roots,omitempty"`
	ServerName string    `json:"server_name,omitempty"`
	Refusal    string    `json:"refusal,omitempty"`
	Retry      bool      `json:"retry,omitempty"`
}

// proof returns what a key signs: the session, so that it proves nothing elsewhere, and the
// operation with its keys.
func proof(s tls.ConnectionState, q question) ([]byte, error) {
	secret, err := s.ExportKeyingMaterial("EXPORTER-linerate-fleet-1", nil, 32)
	if err != nil {
		return nil, fmt.Errorf("prove the key of the host: %w", err)
	}
	return fmt.Appendf(nil, "linerate-%s-1\x00%s\x00%s\x00%s", q.Op, q.Key, q.Next,
		base64.RawStdEncoding.EncodeToString(secret)), nil
}

// verify checks the signatures of a question.
func verify(s tls.ConnectionState, q question) error {
	text, err := proof(s, q)
	if err != nil {
		return err
	}
	if err := bus.VerifySignature(q.Key, text, q.Signature); err != nil {
		return fmt.Errorf("signature of the host's key: %w", err)
	}
	if q.Op == opRotate {
		if err := bus.VerifySignature(q.Next, text, q.NextSignature); err != nil {
			return fmt.Errorf("signature of the host's next key: %w", err)
		}
	}
	return nil
}

var errLong = errors.New("the line is too long")

// readLine reads a JSON object on one line.
func readLine(r io.Reader, most int64, into any) error {
	line, err := bufio.NewReaderSize(io.LimitReader(r, most), int(most)).ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && int64(len(line)) == most, errors.Is(err, bufio.ErrBufferFull):
		return errLong
	case err != nil:
		return err
	}
	return json.Unmarshal(line, into)
}

package gather

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/message"
)

// Measure asks a host to measure another one, and waits for the result. A host that is not
// connected is ErrAbsent, one that does not answer ErrSilent.
func (a *Asker) Measure(ctx context.Context, id string, q message.Measure,
	within time.Duration) (message.Measured, error) {
	if err := ctx.Err(); err != nil { // the client has gone
		return message.Measured{}, err
	}
	came := make(chan bus.Message, 1)
	token, end := a.wait(func(from string, m bus.Message) {
		if from != id {
			return // the token of one host, used by another
		}
		m.Data = bytes.Clone(m.Data[:min(len(m.Data), mostAnswer+1)])
		select {
		case came <- m:
		default:
		}
	})
	defer end()
	q.ID, q.Token = token, token
	b, err := json.Marshal(q)
	if err != nil {
		return message.Measured{}, err
	}
	if err := a.conn.Send(bus.ToHost(id, message.KindMeasure), bus.FromHost(id, message.Reply(token)), b); err != nil {
		return message.Measured{}, fmt.Errorf("ask host %s to measure: %w", id, err)
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return message.Measured{}, ctx.Err()
	case <-timer.C:
		return message.Measured{}, fmt.Errorf("ask host %s to measure: %w", id, ErrSilent)
	case m := <-came:
		var answer message.Answer
		var got message.Measured
		switch {
		case m.Absent:
			return got, fmt.Errorf("ask host %s to measure: %w", id, ErrAbsent)
		case json.Unmarshal(m.Data, &answer) != nil:
			return got, fmt.Errorf("ask host %s to measure: the answer is not one of this protocol", id)
		case answer.Error != "":
			return message.Measured{Refused: answer.Error}, nil
		}
		if err := json.Unmarshal(answer.Data, &got); err != nil {
			return got, fmt.Errorf("ask host %s to measure: %w", id, err)
		}
		return got, nil
	}
}

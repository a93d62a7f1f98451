package gather

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/message"
)

// Asker asks hosts over one connection, which it should have for itself. Its methods may be called
// from any number of goroutines.
type Asker struct {
	conn *bus.Conn

	mu      sync.Mutex
	waiting map[string]func(id string, m bus.Message) // by token
}

// New returns an asker.
func New(conn *bus.Conn) (*Asker, error) {
	a := &Asker{conn: conn, waiting: make(map[string]func(string, bus.Message))}
	_, err := conn.Subscribe(bus.FromHost("*", message.Reply(">")), a.take)
	return a, err
}

// take hands a message to who waits for it. What comes late is dropped.
func (a *Asker) take(m bus.Message) {
	id, kind, ok := bus.Sender(m.Subject)
	token, reply := strings.CutPrefix(kind, message.Reply(""))
	if !ok || !reply {
		return
	}
	a.mu.Lock()
	f := a.waiting[token]
	a.mu.Unlock()
	if f != nil {
		f(id, m)
	}
}

// wait registers who waits for a token; end ends that.
func (a *Asker) wait(f func(id string, m bus.Message)) (token string, end func()) {
	token = rand.Text()
	a.mu.Lock()
	a.waiting[token] = f
	a.mu.Unlock()
	return token, func() {
		a.mu.Lock()
		delete(a.waiting, token)
		a.mu.Unlock()
	}
}

// Question is what all hosts of a list are asked.
type Question struct {
	Verb   string
	Args   []string
	IDs    []string      // whom
	All    bool          // these are all members: one message for all of them
	Within time.Duration // 0: as long as the spread of the answers and ten seconds
	// Spread is the time over which hosts spread their answers; 0: a millisecond for each twenty
	// hosts, which keeps a gathering at two fifths of what one connection can take.
	Spread time.Duration
}

// Gathered is what came back.
type Gathered struct {
	Answers map[string]message.Answer // by id
	// Absent hosts are not connected, Silent ones are, or it is not known, and did not answer.
	Absent []string
	Silent []string
	// Incomplete: the connection of the hub was cut meanwhile, so answers may be lost.
	Incomplete bool
	Took       time.Duration
}

// Bounds of a question.
const (
	answersPerMillisecond = 20
	patience              = 10 * time.Second
	mostAnswer            = message.MostAnswer
)

// Ask asks, and waits for the answers.
func (a *Asker) Ask(ctx context.Context, q Question) (Gathered, error) {
	if err := ctx.Err(); err != nil { // the client has gone
		return Gathered{}, err
	}
	if q.Spread == 0 {
		q.Spread = time.Duration(len(q.IDs)/answersPerMillisecond) * time.Millisecond
	}
	if q.Within == 0 {
		q.Within = q.Spread + patience
	}
	type one struct {
		id   string
		data []byte // nil: absent
	}
	came := make(chan one, len(q.IDs)) // one of each host: no host takes the place of another
	first := make(map[string]bool, len(q.IDs))
	for _, id := range q.IDs {
		first[id] = true
	}
	token, end := a.wait(func(id string, m bus.Message) {
		// Bytes are copied and the rest is done elsewhere: this is the reader of the connection, which
		// calls it for one message at a time.
		if !first[id] {
			return // twice, or never asked
		}
		first[id] = false
		answer := one{id: id}
		if !m.Absent {
			answer.data = bytes.Clone(m.Data[:min(len(m.Data), mostAnswer+1)])
		}
		came <- answer
	})
	defer end()
	before, start := a.conn.Lost(), time.Now()
	b, err := json.Marshal(message.Ask{ID: token, Verb: q.Verb, Args: q.Args, Token: token,
		SpreadMS: q.Spread.Milliseconds()})
	if err != nil {
		return Gathered{}, err
	}
	if q.All {
		err = a.conn.Send(bus.ToAll(message.KindAsk), "", b)
	} else {
		for _, id := range q.IDs {
			if err = a.conn.Send(bus.ToHost(id, message.KindAsk), bus.FromHost(id, message.Reply(token)), b); err != nil {
				break
			}
		}
	}
	if err != nil {
		return Gathered{}, fmt.Errorf("ask %d hosts: %w", len(q.IDs), err)
	}
	g := Gathered{Answers: make(map[string]message.Answer, len(q.IDs))}
	missing := make(map[string]bool, len(q.IDs))
	for _, id := range q.IDs {
		missing[id] = true
	}
	absent := make(map[string]bool)
	timer := time.NewTimer(q.Within)
	defer timer.Stop()
	over := false
waiting:
	for len(missing) > 0 {
		var o one
		select {
		case o = <-came: // counts also when the time is over: this process may have been paused
		default:
			if over {
				break waiting
			}
			select {
			case <-ctx.Done():
				return g, ctx.Err()
			case <-timer.C:
				over = true
				continue
			case o = <-came:
			}
		}
		delete(missing, o.id)
		if o.data == nil {
			absent[o.id] = true
			continue
		}
		var answer message.Answer
		if len(o.data) > mostAnswer || json.Unmarshal(o.data, &answer) != nil {
			answer = message.Answer{Error: "the answer is not one of this protocol"}
		}
		g.Answers[o.id] = answer
	}
	for _, id := range q.IDs {
		switch {
		case absent[id]:
			g.Absent = append(g.Absent, id)
		case missing[id]:
			g.Silent = append(g.Silent, id)
		}
	}
	g.Took, g.Incomplete = time.Since(start), a.conn.Lost() != before
	return g, nil
}

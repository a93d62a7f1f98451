package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/firewall/tally"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
)

// DefaultSocket is where the agent of a host listens.
const DefaultSocket = "/run/linerate/agent.sock"

// answerWithin is how long a client waits for an answer if its context has no deadline.
const answerWithin = 10 * time.Second

// Client sends questions to a server. It connects with the first question, and again after a
// connection has ended. Its methods may be called from any number of goroutines; it sends one
// question at a time.
type Client struct {
	socket string

	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

// NewClient returns a client of a server that need not run yet.
func NewClient(socket string) *Client { return &Client{socket: socket} }

// Close ends the connection.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hangUp()
}

func (c *Client) hangUp() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn, c.in = nil, nil
	return err
}

// ask sends one question. It reconnects once if the server has closed the connection meanwhile, for
// instance because it was restarted.
func (c *Client) ask(ctx context.Context, q question) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.conn != nil
	line, err := c.exchange(ctx, q)
	if err != nil && used && ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		line, err = c.exchange(ctx, q)
	}
	if err != nil {
		return answer{}, fmt.Errorf("ask agent at %s: %w", c.socket, err)
	}
	a, err := parseAnswer(line)
	if err != nil {
		if errors.Is(err, errNotAnAnswer) {
			_ = c.hangUp() // the next line would be the rest of this answer
		}
		return answer{}, fmt.Errorf("ask agent at %s: %w", c.socket, err)
	}
	return a, nil
}

// exchange sends a question and returns the line that comes back. After an error the connection is
// closed.
func (c *Client) exchange(ctx context.Context, q question) (line []byte, err error) {
	if c.conn == nil {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", c.socket)
		if err != nil {
			return nil, err
		}
		c.conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	conn := c.conn
	defer func() {
		if err != nil {
			_ = c.hangUp() // the error above is the one to return
		}
	}()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(answerWithin)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // wakes a waiting read or write
	defer stop()
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(text, '\n')); err != nil {
		return nil, err
	}
	return readLine(c.in, maxAnswer)
}

var errLongLine = errors.New("line is too long")

// readLine returns the next line without its end; it fails if the line is longer than limit bytes.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit+1 {
			return nil, errLongLine
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimSuffix(line, []byte{'\n'}), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

func (c *Client) hello(ctx context.Context) (answer, error) {
	a, err := c.ask(ctx, question{Ask: askHello})
	if err == nil && a.Version == "" {
		err = fmt.Errorf("ask agent at %s: %w", c.socket, errNotAnAnswer)
	}
	return a, err
}

// State returns the state directory of the host, as the server reports it.
func (c *Client) State(ctx context.Context) (string, error) {
	a, err := c.hello(ctx)
	return a.State, err
}

// Stamp works like [Local.Stamp].
func (c *Client) Stamp(ctx context.Context) (string, error) {
	a, err := c.ask(ctx, question{Ask: askStamp})
	return a.Stamp, err
}

// History works like [Local.History].
func (c *Client) History(ctx context.Context) ([]journal.Change, error) {
	a, err := c.ask(ctx, question{Ask: askHistory})
	return a.Changes, err
}

// Runs works like [Local.Runs].
func (c *Client) Runs(ctx context.Context, kind runs.Kind) ([]string, error) {
	list, _ := asks(kind)
	a, err := c.ask(ctx, question{Ask: list})
	return a.Runs, err
}

// Run works like [Local.Run].
func (c *Client) Run(ctx context.Context, kind runs.Kind, id string) ([]byte, error) {
	if !runs.Name(id) {
		return nil, fmt.Errorf("ask agent for run %.100q: %w", id, runs.ErrNoRun)
	}
	_, one := asks(kind)
	a, err := c.ask(ctx, question{Ask: one, ID: id})
	if err == nil && len(a.Document) == 0 {
		err = fmt.Errorf("ask agent at %s: %w", c.socket, errNotAnAnswer)
	}
	return a.Document, err
}

// orderWithin is how long a client waits for the answer to an order: a guard process has to start,
// and storage may be slow.
const orderWithin = time.Minute

// Order hands a signed order to root and returns root's answer. It may be sent again after an
// error: a host carries out an order once.
func (c *Client) Order(ctx context.Context, envelope []byte) (order.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, orderWithin)
	defer cancel()
	a, err := c.ask(ctx, question{Ask: askOrder, Order: envelope})
	if err == nil && a.Order == nil {
		err = fmt.Errorf("ask agent at %s: %w", c.socket, errNotAnAnswer)
	}
	if err != nil {
		return order.Answer{}, err
	}
	return *a.Order, nil
}

// Orders returns what became of the orders of one rollout, or of all with an empty name.
func (c *Client) Orders(ctx context.Context, rollout string) (executor.Report, error) {
	a, err := c.ask(ctx, question{Ask: askOrders, ID: rollout})
	if err == nil && a.Report == nil {
		err = fmt.Errorf("ask agent at %s: %w", c.socket, errNotAnAnswer)
	}
	if err != nil {
		return executor.Report{}, err
	}
	return *a.Report, nil
}

// Rules returns the counters of the packet filter's rules, and how many are left out, as
// Local.Rules does.
func (c *Client) Rules(ctx context.Context) ([]tally.Count, int, error) {
	a, err := c.ask(ctx, question{Ask: askRules})
	if err == nil && len(a.Rules) > tally.Most {
		return nil, 0, fmt.Errorf("%w: %d rules", errNotAnAnswer, len(a.Rules))
	}
	return a.Rules, a.Left, err
}

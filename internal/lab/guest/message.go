package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// message is one message between host and guest; one field or a few are set. Only one request runs
// at a time, so replies need no number.
type message struct {
	// To the guest: a request, or Kill to end the running one.
	Run   *Command `json:"run,omitempty"`
	Apart bool     `json:"apart,omitempty"` // with Run: its two outputs are kept apart
	Kill  bool     `json:"kill,omitempty"`
	Read  string   `json:"read,omitempty"`

	// To the host: readiness for the first request, pieces of output, and the result, which is a
	// status, a file's content or an error.
	Ready     string `json:"ready,omitempty"` // release of the kernel
	Output    []byte `json:"output,omitempty"`
	Complaint []byte `json:"complaint,omitempty"` // a program's standard error
	Status    *int   `json:"status,omitempty"`
	Done      bool   `json:"done,omitempty"` // Data is the whole file
	Data      []byte `json:"data,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Command is a program to run in a guest.
type Command struct {
	Args []string `json:"args"`          // Args[0] is a path, or a name in /usr/sbin, /usr/bin, /sbin or /bin
	As   string   `json:"as,omitempty"`  // the program's own argument 0; "": Args[0]
	Env  []string `json:"env,omitempty"` // NAME=value, added to the environment of every program of a guest
	Dir  string   `json:"dir,omitempty"` // "": /root
}

// talk writes whole messages, from any goroutine.
type talk struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newTalk(w io.Writer) *talk { return &talk{enc: json.NewEncoder(w)} }

func (t *talk) say(m message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.enc.Encode(m); err != nil {
		return fmt.Errorf("send to the other side: %w", err)
	}
	return nil
}

// outputTo sends the bytes written to it as output.
type outputTo struct{ *talk }

func (o outputTo) Write(b []byte) (int, error) { return len(b), o.say(message{Output: b}) }

// complaintTo sends the bytes written to it as standard error.
type complaintTo struct{ *talk }

func (c complaintTo) Write(b []byte) (int, error) { return len(b), c.say(message{Complaint: b}) }

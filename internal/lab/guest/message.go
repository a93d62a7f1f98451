package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// message is what host and guest tell each other; one field or a few are set. There is one request
// at a time, so that an answer needs no number.
type message struct {
	// To the guest: a request, or the end of the one that runs.
	Run   *Command `json:"run,omitempty"`
	Apart bool     `json:"apart,omitempty"` // with Run: its two outputs are told apart
	Kill  bool     `json:"kill,omitempty"`
	Read  string   `json:"read,omitempty"`

	// To the host: that the guest is ready for the first request; pieces of output; the answer,
	// which is one of status, content and error.
	Ready     string `json:"ready,omitempty"` // release of the kernel
	Output    []byte `json:"output,omitempty"`
	Complaint []byte `json:"complaint,omitempty"` // what a program writes to its standard error
	Status    *int   `json:"status,omitempty"`
	Done      bool   `json:"done,omitempty"` // Data is the whole file
	Data      []byte `json:"data,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Command is a program to run in a guest.
type Command struct {
	Args []string `json:"args"`          // Args[0] is a path, or a name to look for in /usr/sbin, /usr/bin, /sbin and /bin
	As   string   `json:"as,omitempty"`  // the name that the program is told it was started by; "": Args[0]
	Env  []string `json:"env,omitempty"` // NAME=value, in addition to what every program of a guest has
	Dir  string   `json:"dir,omitempty"` // "": /root
}

// talk writes messages whole, from whatever goroutine.
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

// outputTo sends what is written to it as output.
type outputTo struct{ *talk }

func (o outputTo) Write(b []byte) (int, error) { return len(b), o.say(message{Output: b}) }

// complaintTo sends what is written to it as what a program says to standard error.
type complaintTo struct{ *talk }

func (c complaintTo) Write(b []byte) (int, error) { return len(b), c.say(message{Complaint: b}) }

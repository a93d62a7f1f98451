package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"

	"strconv"
	"strings"
	"sync"
)

// ErrNotRecorded reports a command that a tape does not hold.
var ErrNotRecorded = errors.New("not on this tape")

// Tape is a recording of commands and their answers. A command that was recorded several times
// plays its answers in their order and then repeats the last. It is safe for concurrent use.
type Tape struct {
	mu      sync.Mutex
	answers map[string][]answer
}

// answer is what one run of a command gave.
type answer struct {
	stdout []byte
	stderr string
	status int
	absent bool
}

// ParseTape reads a tape. Each line begins with the mark of its kind:
//
//	# a comment: where this was recorded
//	$ a command with its arguments; one with blanks is quoted as in Go
//	| a line of the standard output
//	> the end of the standard output, where no newline follows it
//	! the first line of the standard error
//	? the exit status, where it is not 0; "absent" for a program that the system lacks
func ParseTape(text []byte) (*Tape, error) {
	t := &Tape{answers: make(map[string][]answer)}
	scan := bufio.NewScanner(bytes.NewReader(text))
	scan.Buffer(nil, MaxOutput)
	command := ""
	var now *answer
	for number := 1; scan.Scan(); number++ {
		mark, rest, _ := strings.Cut(scan.Text(), " ")
		fail := func(why string) error { return fmt.Errorf("tape, line %d: %s", number, why) }
		if mark != "" && mark != "#" && mark != "$" && now == nil {
			return nil, fail("no command before it")
		}
		switch mark {
		case "", "#":
			continue
		case "$":
			if command = rest; command == "" {
				return nil, fail("an empty command")
			}
			t.answers[command] = append(t.answers[command], answer{})
			now = &t.answers[command][len(t.answers[command])-1]
		case "|":
			now.stdout = append(append(now.stdout, rest...), '\n')
		case ">":
			now.stdout = append(now.stdout, rest...)
		case "!":
			now.stderr = rest
		case "?":
			if now.absent = rest == "absent"; now.absent {
				continue
			}
			status, err := strconv.Atoi(rest)
			if err != nil {
				return nil, fail("no exit status")
			}
			now.status = status
		default:
			return nil, fail("unknown mark " + strconv.Quote(mark))
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("tape: %w", err)
	}
	return t, nil
}

// Run implements Runner.
func (t *Tape) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	line := commandLine(program, args)
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.answers[line]
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", line, ErrNotRecorded)
	}
	a := list[0]
	if len(list) > 1 {
		t.answers[line] = list[1:]
	}
	switch {
	case a.absent:
		return nil, fmt.Errorf("%s: %w", program, ErrNoProgram)
	case a.status != 0:
		return bytes.Clone(a.stdout), &ExitError{program, a.status, a.stderr}
	}
	return bytes.Clone(a.stdout), nil
}

// commandLine is one line for a command, the same for the same arguments.
func commandLine(program string, args []string) string {
	words := append([]string{program}, args...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\r\"") {
			words[i] = strconv.Quote(w)
		}
	}
	return strings.Join(words, " ")
}

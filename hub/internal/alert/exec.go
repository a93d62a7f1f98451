package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"time"
)

const (
	// cleanPath is what programs may look for others in; nothing else of this process's environment
	// is theirs to know.
	cleanPath   = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	mostOutput  = 4 << 10         // bytes of a program's output that go into the log
	lingerBound = 2 * time.Second // for output of a program that has ended, which its children may hold open
)

// program gives what hands messages to a program: on its standard input, without a shell.
func program(argv []string, log *slog.Logger) func(ctx context.Context, body []byte) error {
	return func(ctx context.Context, body []byte) error {
		var out bounded
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), &out, &out
		cmd.Env, cmd.Dir, cmd.WaitDelay = []string{cleanPath, "LANG=C.UTF-8"}, "/", lingerBound
		ownGroup(cmd)
		err := cmd.Run()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // it has ended well; what it left behind is its own affair
		}
		if text := out.String(); text != "" {
			log.Info("program told of alerts", "program", argv[0], "output", text)
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("run %s: not done in time, and killed", argv[0])
		case err != nil:
			return fmt.Errorf("run %s: %w", argv[0], err)
		}
		return nil
	}
}

// bounded keeps the first bytes of an output and lets the rest go.
type bounded struct {
	b    bytes.Buffer
	more bool
}

// Write takes everything, so that nobody waits for a reader.
func (o *bounded) Write(p []byte) (int, error) {
	room := mostOutput - o.b.Len()
	o.more = o.more || len(p) > room
	o.b.Write(p[:min(len(p), room)])
	return len(p), nil
}

// String is what was kept, in one line.
func (o *bounded) String() string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(o.b.String(), "?")), " ")
	if o.more {
		text += " …"
	}
	return text
}

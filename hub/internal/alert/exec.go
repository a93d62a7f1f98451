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
	// cleanPath is the PATH of programs. They inherit nothing else of this process's environment.
	cleanPath   = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	mostOutput  = 4 << 10         // bytes of a program's output in the log
	lingerBound = 2 * time.Second // for the output of a program that has ended, which its children may hold open
)

// program returns a func that hands messages to a program: on its standard input, without a shell.
func program(argv []string, log *slog.Logger) func(ctx context.Context, body []byte) error {
	return func(ctx context.Context, body []byte) error {
		var out bounded
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), &out, &out
		cmd.Env, cmd.Dir, cmd.WaitDelay = []string{cleanPath, "LANG=C.UTF-8"}, "/", lingerBound
		ownGroup(cmd)
		err := cmd.Run()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // it has succeeded; processes that it left behind are its own
		}
		if text := out.String(); text != "" {
			log.Info("program ran for alerts", "program", argv[0], "output", text)
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("run %s: exceeded its time, and was killed", argv[0])
		case err != nil:
			return fmt.Errorf("run %s: %w", argv[0], err)
		}
		return nil
	}
}

// bounded keeps the first bytes of an output and discards the rest.
type bounded struct {
	b    bytes.Buffer
	more bool
}

// Write accepts everything, so that the program never blocks.
func (o *bounded) Write(p []byte) (int, error) {
	room := mostOutput - o.b.Len()
	o.more = o.more || len(p) > room
	o.b.Write(p[:min(len(p), room)])
	return len(p), nil
}

// String returns the kept output on one line.
func (o *bounded) String() string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(o.b.String(), "?")), " ")
	if o.more {
		text += " …"
	}
	return text
}

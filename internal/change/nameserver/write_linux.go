package nameserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/change/knob"
)

// reloads are the options of named that it takes over without losing its cache. All others, and all
// of the other programs, need a restart: Unbound keeps the sockets at a reload and loses its cache.
var reloads = map[string]bool{"max-cache-size": true, "max-cache-ttl": true, "max-ncache-ttl": true, "prefetch": true}

// Read returns the value of an option; [Unset] if no file sets it. The error of a file that does
// not exist is fs.ErrNotExist.
func Read(kind Kind, path, option string) (string, error) {
	if kind == Named && option == Workers {
		held, err := turn(context.Background(), path)
		if err != nil {
			return "", err
		}
		defer held.Close() // it was opened for reading
		s, err := Find(kind, path)
		if err != nil {
			return "", err
		}
		if s.Unit != "" {
			return "", fmt.Errorf("%w: %s takes it from its environment: set -n in OPTIONS of /etc/default/named",
				knob.ErrNotSupported, s.Unit)
		}
		return workers(s.Args), nil
	}
	l, err := scan(kind, path, option)
	if err != nil {
		return "", err
	}
	return l.value(), nil
}

// Check returns why a value cannot be written, or nil. It changes nothing.
func Check(kind Kind, path, option, value string) error {
	if err := plain(value); err != nil {
		return err
	}
	held, err := turn(context.Background(), path)
	if err != nil {
		return err
	}
	defer held.Close() // it was opened for reading
	s, err := Find(kind, path)
	if err == nil {
		err = s.reachable()
	}
	if err != nil || kind == Named && option == Workers {
		return err
	}
	l, err := scan(kind, path, option)
	if err != nil {
		return err
	}
	file, _, err := l.edit(kind, option, value)
	if err != nil || file == "" {
		return err
	}
	const writable = 2
	if err := syscall.Access(filepath.Dir(file), writable); err != nil {
		return &fs.PathError{Op: "write", Path: filepath.Dir(file), Err: err}
	}
	return nil
}

// plain refuses values that could be more than one value.
func plain(value string) error {
	if !isPlain(value) {
		return fmt.Errorf("%w: %q holds signs that values of this kind do not have", knob.ErrInvalid, value)
	}
	return nil
}

// Write sets an option and makes the running server use it, as the package describes.
func Write(ctx context.Context, kind Kind, path, option, value string) error {
	if err := plain(value); err != nil {
		return err
	}
	held, err := turn(ctx, path)
	if err != nil {
		return err
	}
	defer held.Close() // it was opened for reading
	s, err := Find(kind, path)
	s.turn = held
	running := err == nil
	if running {
		err = s.reachable()
	} else if errors.Is(err, fs.ErrNotExist) && option != Workers {
		err = nil // the server reads the file when it starts
	}
	if err != nil {
		return err
	}
	if kind == Named && option == Workers {
		args := withWorkers(s.Args, value)
		if slices.Equal(args, s.Args) {
			return nil
		}
		return s.adopt(ctx, kind, path, args, true)
	}
	l, err := scan(kind, path, option)
	if err != nil {
		return err
	}
	file, text, err := l.edit(kind, option, value)
	if err != nil || file == "" {
		return err
	}
	if err := replace(file, text); err != nil {
		return err
	}
	reload := kind == Named && reloads[option]
	seen := false // by the server
	if err = check(ctx, kind, path); err == nil {
		if !running {
			return nil
		}
		seen = true
		if err = s.adopt(ctx, kind, path, s.Args, !reload); err == nil {
			return nil
		}
	}
	// The caller's context may be the cause.
	ctx = context.WithoutCancel(ctx)
	undo := replace(file, l.texts[file])
	if !running {
		return errors.Join(err, undo)
	}
	now, findErr := Find(kind, path)
	now.turn = held
	switch {
	case undo != nil:
	case errors.Is(findErr, fs.ErrNotExist):
		undo = s.restart(ctx, kind, path, s.Args) // it did not come back with the new value
	case findErr == nil && seen:
		undo = now.adopt(ctx, kind, path, s.Args, !reload)
	}
	if undo != nil {
		undo = fmt.Errorf("put back %s: %w", file, undo)
	}
	return errors.Join(err, undo)
}

// adopt makes a server use its present files, and reads what it logs about them.
func (s Server) adopt(ctx context.Context, kind Kind, path string, args []string, restart bool) error {
	log := s.log()
	from := int64(0)
	if info, err := os.Stat(log); err == nil {
		from = info.Size()
	}
	if restart {
		err := s.restart(ctx, kind, path, args)
		if said := complaint(log, from); said != nil {
			return said
		}
		return err
	}
	if err := syscall.Kill(s.PID, syscall.SIGHUP); err != nil {
		return fmt.Errorf("reload %s: %w", kind, err)
	}
	if log == "" {
		return nil
	}
	for end := time.Now().Add(waitForServer); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if b := since(log, from); bytes.Contains(b, []byte("reloading configuration succeeded")) ||
			bytes.Contains(b, []byte("reloading configuration failed")) {
			return complaint(log, from)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return fmt.Errorf("reload %s: %w: its log does not say that it has reloaded", kind, os.ErrDeadlineExceeded)
}

// Restart restarts the server of a configuration file, which empties the cache of BIND and Unbound.
// That of Knot Resolver is in files of its directory and keeps its largest size: Restart removes
// them, except under systemd.
func Restart(ctx context.Context, kind Kind, path string) error {
	held, err := turn(ctx, path)
	if err != nil {
		return err
	}
	defer held.Close() // it was opened for reading
	s, err := Find(kind, path)
	s.turn = held
	if err == nil {
		err = s.reachable()
	}
	if err != nil {
		return err
	}
	if kind == Kresd {
		s.forget = "data.mdb lock.mdb"
	}
	return s.restart(ctx, kind, path, s.Args)
}

// refused are lines of a log in which a server says that it has not taken an option. A warning is
// one too: "disabling lame cache despite lame-ttl" is an option without effect.
var refused = pattern.New(`(?i)(\.conf:\d+: .*(no longer exists|ignor|disabling|unknown|deprecated|obsolete|` +
	`not (supported|implemented))|reloading configuration failed|fatal error|error: |` +
	`ERROR: |setsockopt\(.*(failed|was not granted)|exiting \(due to|loading configuration: )`)

// complaint returns the first line of a log that refuses something, as an error. The last words of
// the server that a restart ends are in the same log: BIND that is ended while it still loads its
// configuration calls that a fatal error, and can fail an assertion. They come before the first
// line of the server after it.
func complaint(log string, from int64) error {
	said := since(log, from)
	if start := bytes.LastIndex(said, []byte(" starting BIND ")); start >= 0 {
		said = said[start:]
	}
	ended := false
	for text := range bytes.Lines(said) {
		switch {
		case bytes.Contains(text, []byte("loading configuration: shutting down")):
			ended = true
		case ended && bytes.Contains(text, []byte("exiting (due to")):
			ended = false
		case refused.Match(text):
			return fmt.Errorf("%w: the server logs: %s", knob.ErrInvalid, strings.TrimSpace(string(text)))
		}
	}
	return nil
}

// mostLog bounds what is read of a log.
const mostLog = 1 << 20

func since(log string, from int64) []byte {
	f, err := os.Open(log)
	if err != nil {
		return nil
	}
	defer f.Close() // opened for reading
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil
	}
	b, _ := io.ReadAll(io.LimitReader(f, mostLog)) // what could be read is judged
	return b
}

// check asks the program's checker about the whole configuration. A checker that is not installed
// leaves the judgement to the server.
func check(ctx context.Context, kind Kind, path string) error {
	program := map[Kind]string{Named: "named-checkconf", Unbound: "unbound-checkconf"}[kind]
	if program == "" {
		return nil
	}
	full := program
	if _, err := exec.LookPath(program); err != nil {
		full = filepath.Join("/usr/sbin", program)
	}
	out, err := exec.CommandContext(ctx, full, path).CombinedOutput()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return fmt.Errorf("%w: %s: %s", knob.ErrInvalid, program, firstLine(string(out)))
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// replace replaces a file as a whole. Mode and owner stay.
func replace(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	file, err := durable.NewDraft(path, info.Mode().Perm())
	if err == nil {
		defer file.Discard()
		if uid, gid, known := durable.Owner(info); known {
			err = file.Chown(uid, gid)
		}
		if err == nil {
			_, err = file.Write(text)
		}
		if err == nil {
			err = file.Publish(true)
		}
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

// workers returns the argument of -n.
func workers(args []string) string {
	if i := slices.Index(args, "-n"); i > 0 && i+1 < len(args) {
		return args[i+1]
	}
	for _, a := range args {
		if n, ok := strings.CutPrefix(a, "-n"); ok && n != "" {
			return n
		}
	}
	return Unset
}

// withWorkers returns a command line with another argument of -n, where the old one was or at the
// end, from where the value [Unset] takes it away again.
func withWorkers(args []string, value string) []string {
	args = slices.Clone(args)
	if i := slices.Index(args, "-n"); i > 0 && i+1 < len(args) {
		if value == Unset {
			return slices.Delete(args, i, i+2)
		}
		args[i+1] = value
		return args
	}
	if i := slices.IndexFunc(args, func(a string) bool {
		n, ok := strings.CutPrefix(a, "-n")
		_, err := strconv.Atoi(n)
		return ok && err == nil
	}); i > 0 {
		if value == Unset {
			return slices.Delete(args, i, i+1)
		}
		args[i] = "-n" + value
		return args
	}
	if value == Unset {
		return args
	}
	return append(args, "-n", value)
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/rows"
	"github.com/linerate/linerate/internal/report/text"
)

// forScripts adds --output to a command whose RunE is set, and --format where its document is a
// table. It comes after streaming, because the lines go to the file too.
func (a *app) forScripts(c *cobra.Command, table bool) *cobra.Command {
	f := c.Flags()
	if table {
		f.StringVar(&a.format, "format", "", "print the table as csv, prometheus or influx")
	}
	f.StringVar(&a.output, "output", "",
		"write to `FILE` instead of standard output, all at once at the end; replaces only what linerate wrote")
	f.BoolVar(&a.overwrite, "overwrite", false, "let --output replace any file")
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.checkScripts(cmd); err != nil {
			return err
		}
		file, err := a.openOutput()
		if err != nil {
			return err
		}
		return file.finish(a, run(cmd, args))
	}
	return c
}

// checkScripts refuses flags that contradict each other.
func (a *app) checkScripts(c *cobra.Command) error {
	f := rows.Format(a.format)
	switch {
	case f != "" && !slices.Contains(rows.Formats(), f):
		return usagef("--format %q: not one of csv, prometheus, influx", a.format)
	case f != "" && (a.json || a.jsonLines):
		return usagef("--format %s: give it without --json and --json-lines", f)
	case a.overwrite && a.output == "":
		return usagef("--overwrite: needs --output")
	}
	return nil
}

// printTable prints a document as the table that --format asks for, or else as print does.
func (a *app) printTable(doc any, table func() rows.Table, show func(text.Style) error) error {
	if a.format != "" {
		return rows.Write(a.out, rows.Format(a.format), table())
	}
	return a.print(doc, show)
}

// lines writes the lines of --json-lines. Its methods may be called from several goroutines; those
// of a nil one do nothing.
type lines struct {
	mu   sync.Mutex
	w    io.Writer
	stop context.CancelFunc // ends the command when the reader has gone
	err  error              // of the first write that failed
}

// put writes one line whole. After an error it writes nothing more.
func (l *lines) put(line *report.Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		if l.err = report.Encode(l.w, line); l.err != nil {
			l.stop()
		}
	}
	return l.err
}

func (l *lines) event(message string) {
	line := report.NewLine(report.LineEvent)
	line.Message = strings.TrimSpace(message)
	_ = l.put(line) // the command ends by its context, and reports the error
}

// document writes the line that carries a document.
func (l *lines) document(kind report.LineKind, doc any) error {
	line, err := report.DocumentLine(kind, doc)
	if err != nil {
		return err
	}
	return l.put(line)
}

// endLines writes why the command failed. A mistake on the command line began nothing and has no
// line; a status without a message is in the result.
func (a *app) endLines(err error) {
	if err != nil && err.Error() != "" && exitStatus(err) != exitUsage {
		_ = a.lines.document(report.LineError, a.errorDocument(err)) // the caller looks at the error of the lines
	}
}

// streaming adds --json-lines to a command that has something to say while it runs.
//
// A reader that goes away ends the command as Ctrl-C would, so that a tune takes its trials back
// itself. Without a receiver for SIGPIPE, Go's runtime kills a program that writes to a closed
// standard output.
func (a *app) streaming(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&a.jsonLines, "json-lines", false,
		"print one JSON object a line while the command runs: intervals, events, and the result or the error")
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if !a.jsonLines {
			return run(cmd, args)
		}
		a.json = true // errors are JSON too
		broken := make(chan os.Signal, 1)
		signal.Notify(broken, syscall.SIGPIPE)
		defer signal.Stop(broken)
		typed := cmd.Context()
		ctx, stop := context.WithCancel(typed)
		defer stop()
		cmd.SetContext(ctx)
		a.lines = &lines{w: a.out, stop: stop}
		err := interruption(typed, run(cmd, args))
		a.endLines(err)
		if failed := a.lines.err; failed != nil {
			return fmt.Errorf("write lines: %w", failed)
		}
		return err
	}
	return c
}

// outputFile is the file of --output while its command runs; nil: there is none.
type outputFile struct {
	draft   *durable.Draft
	name    string
	written bool
	broken  error // of the first write that failed
}

// Write remembers a write that failed: half of a document is not to get the name of a whole one.
func (o *outputFile) Write(p []byte) (int, error) {
	n, err := o.draft.Write(p)
	o.written = o.written || n > 0
	if o.broken == nil {
		o.broken = err
	}
	return n, err
}

// openOutput makes the command write to a file beside the one of --output. It checks first that the
// file may be replaced, so that nothing is measured for nothing.
func (a *app) openOutput() (*outputFile, error) {
	if a.output == "" {
		return nil, nil
	}
	if err := a.mayReplace(); err != nil {
		return nil, err
	}
	draft, err := durable.NewDraft(a.output, outputMode(a.output))
	if err != nil {
		return nil, fmt.Errorf("--output %s: %w", a.output, err)
	}
	o := &outputFile{draft: draft, name: a.output}
	a.out = o
	return o, nil
}

// finish gives the file its name if the command has printed something, and otherwise removes it. A
// command that ended with an error may have printed what it had.
func (o *outputFile) finish(a *app, err error) error {
	if o == nil {
		return err
	}
	defer o.draft.Discard()
	failed := o.broken
	if failed != nil && errors.Is(err, failed) {
		err = nil
	}
	if failed == nil && o.written {
		if failed = a.mayReplace(); failed == nil { // also what appeared meanwhile
			failed = o.draft.Publish(true)
		}
	}
	if failed != nil {
		return errors.Join(err, fmt.Errorf("--output %s: %w", o.name, failed))
	}
	return err
}

// outputMode returns the permissions of a file that is replaced, and otherwise those of a file
// that everyone may read: it holds what the terminal would have shown.
func outputMode(name string) fs.FileMode {
	if info, err := os.Stat(name); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}

// mayReplace refuses to replace what linerate has not written.
func (a *app) mayReplace() error {
	info, err := os.Lstat(a.output)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--output %s: %w", a.output, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return usageError{flagError{fmt.Errorf("--output %s: not a regular file", a.output),
			"redirect with > to write to a device or through a link"}}
	case a.overwrite || info.Size() == 0:
		return nil
	}
	f, err := os.Open(a.output)
	if err != nil {
		return fmt.Errorf("--output %s: %w", a.output, errors.Unwrap(err))
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head)
	if !own(head[:n]) {
		return usageError{flagError{
			fmt.Errorf("--output %s: the file exists, and is no document or table of linerate", a.output),
			"another name, or --overwrite to replace it"}}
	}
	return nil
}

// own reports whether a file begins like one that --output wrote: a document or a line of JSON, or
// a table.
func own(head []byte) bool {
	text := string(head)
	if strings.HasPrefix(text, "{") {
		d := json.NewDecoder(strings.NewReader(text)) // another program may have indented it
		_, _ = d.Token()                              // the brace
		key, _ := d.Token()
		value, _ := d.Token()
		schema, _ := value.(string)
		return key == "schema" && strings.HasPrefix(schema, "linerate.")
	}
	return strings.HasPrefix(text, "# HELP "+rows.Prefix) || strings.HasPrefix(text, rows.Prefix) ||
		strings.HasPrefix(text, "time,host,")
}
